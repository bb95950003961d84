// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/session/capture_request.h"
#include "aggregator/session/capture_session.h"
#include "aggregator/session/execution_stop_policy.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// What an agent is told to do: the fields of the messages of the same names. Plain values.
struct StartOrder {
  CaptureId capture_id;
  CaptureSpec spec;
  bool arm = false;                   // and begin nothing before a BeginOrder
  std::optional<CaptureBegin> begin;  // without `arm`: when; nothing: at once
};
struct BeginOrder {
  CaptureId capture_id;
  CaptureBegin begin;
};
struct StopOrder {
  CaptureId capture_id;
  uint64_t host_raw_ns = 0;  // 0: at once
};
using CaptureOrder = std::variant<StartOrder, BeginOrder, StopOrder>;

// A capture that an agent which has just connected has a part in.
struct ResumedCapture {
  StartOrder start;
  bool stopping = false;
  std::vector<WorkerIdentity> workers;  // of this agent, which have not come to an end in it
};

// Finds the execution at which all cores of a capture can begin together: one that none of them has
// reached when its agent hears of it. Fed with what workers report as their newest while events are
// held back. A plain state machine; time is passed in.
class ExecutionStart {
 public:
  // Nothing is worth waiting longer for than for workers that say nothing of executions.
  static constexpr uint64_t kPatienceNs = 2'000'000'000;

  // The number, once it can be said: when every worker that records has told of executions twice
  // (or of some, and the others were waited for), the highest and as many more as take 200 ms, two
  // at least.
  std::optional<uint64_t> Choose(const CaptureRecord& record, uint64_t now_monotonic_ns);

 private:
  uint64_t first_seen_ns_ = 0;  // monotonic; 0: nobody has told of any
  uint64_t first_seen_ = 0;     // the highest then
};

// What came of asking who can take part.
struct ArmingOutcome {
  bool begun = false;
  uint64_t arm_ns = 0;   // from the command to the judgement
  uint64_t lead_ns = 0;  // from there to the beginning
};

// Where the coordinator's decisions go. All are called on its sequence and must not call back into
// it. Those after worker_changed may be left out.
struct CoordinatorOutputs {
  std::function<void(const std::string& agent_id, ConnectionId, const CaptureOrder&)> send;
  // Remembers a capture; with `durable` it is on disk on return.
  std::function<absl::Status(const CaptureRecord&, bool durable)> persist;
  // The capture differs from what was last said. After its last change, one that has ended is no
  // longer among the running ones.
  std::function<void(const CaptureRecord&)> changed;
  std::function<void(const KnownAgent&)> agent_changed;  // came, or went
  std::function<void(const std::string& agent_id, const WorkerInfo&)> worker_changed;
  std::function<void(const ArmingOutcome&)> judged;
  std::function<void(CaptureObstacle, uint32_t workers)> refused;
  // Tick is to be called after so long: an order is due then.
  std::function<void(uint64_t in_ns)> wake;
  // Clocks will be asked for soon: now is the time to find out how they go.
  std::function<void()> clocks_needed;
  // A capture was told to stop because of a quota, and which.
  std::function<void(const CaptureRecord&, const std::string& why)> stopped_by_quota;
};

// A moment on one host's CLOCK_MONOTONIC_RAW.
struct MomentOnHost {
  uint64_t raw_ns = 0;
  uint64_t bound_ns = 0;  // how far it can be from it
};

// What the coordinator has to know of the world. Called on its sequence; each may be left out.
struct CoordinatorInputs {
  // The reference timescale, now; else CLOCK_REALTIME.
  std::function<uint64_t()> reference_ns;
  // A moment of the reference as this agent's host will see it; nothing where nothing is known of
  // its clock.
  std::function<std::optional<MomentOnHost>(const AgentInfo&, uint64_t reference_ns)> host_moment;
  // How much a capture may store that selects workers of these jobs, and has stored already; see
  // Admit for errors.
  std::function<absl::StatusOr<CaptureAllowance>(
      const CaptureSpec&, const std::set<std::string>& jobs, std::optional<uint64_t> own_bytes)>
      admit;
  std::function<uint64_t(const CaptureId&)> stored_bytes;
  // Whether the store as a whole may take more.
  std::function<bool()> has_room;
};

// Brings agents and captures together: who is told what and when, and what is remembered. Does no
// I/O of its own. Everything happens on one sequence, which is the caller's to keep.
class Coordinator {
 public:
  Coordinator(const Clock& clock, Random& random, CoordinatorOutputs outputs,
              CoordinatorInputs inputs = {});
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // What an earlier run of the aggregator left, captures that have ended included: before anything
  // else.
  void RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                    uint64_t last_seen_realtime_ns);
  void RestoreCapture(CaptureRecord record);

  // Agents. Connect answers with the captures that concern the agent; see AgentRegistry::Connect
  // for its errors; UNAVAILABLE when it could not be remembered that it takes part in one. The
  // reports of a superseded connection are refused with ABORTED.
  absl::StatusOr<std::vector<ResumedCapture>> Connect(const AgentInfo& agent, ConnectionId from);
  void Disconnect(const std::string& agent_id, ConnectionId from);
  absl::Status OnHeartbeat(const std::string& agent_id, ConnectionId from);
  absl::Status OnWorker(const std::string& agent_id, ConnectionId from, const WorkerInfo& worker);
  absl::Status OnWorkerGone(const std::string& agent_id, ConnectionId from,
                            const WorkerIdentity& worker);
  absl::Status OnWorkerStatus(const std::string& agent_id, ConnectionId from,
                              const CaptureWorkerStatus& status);
  absl::Status OnAgentStatus(const std::string& agent_id, ConnectionId from,
                             const CaptureId& capture, uint32_t matched_workers, bool finished);

  // Operators. Start: errors of CompleteSpec and Admit; RESOURCE_EXHAUSTED beyond
  // limits::kCapturesRunningMax, or whatever persisting returned; nothing has then begun. It arms;
  // where there is nobody to be asked the capture has ended already. Stop: NOT_FOUND for a capture
  // that is not running; one that is stopping already is answered as it is; whatever persisting
  // returned: it then goes on.
  // `may_name`: see CaptureSurroundings.
  absl::StatusOr<CaptureRecord> StartCapture(const CaptureSpec& spec, const MayName& may_name = {});
  absl::StatusOr<CaptureRecord> StopCapture(const CaptureId& capture);

  // A capture that has ended is deleted: it is open for nobody any more.
  void Forget(const CaptureId& capture);

  // Lets time pass: answers that did not come, moments that have, durations that are over, agents
  // that did not return, records to be written. Call it a few times a second, and when `wake` says.
  void Tick();

  // Something that was found about a capture, for its record; nothing when it has ended.
  void Warn(const CaptureId& capture, std::string warning);

  const AgentRegistry& registry() const { return registry_; }
  // nullptr for one that has ended or never was.
  const CaptureRecord* FindRunning(const CaptureId& capture) const;
  // One that runs, or that has ended and is open for late agents; nullptr for any other.
  const CaptureRecord* Find(const CaptureId& capture) const;
  size_t running() const { return running_.size(); }
  void ForEachRunning(const std::function<void(const CaptureRecord&)>& visit) const;
  std::vector<CaptureRecord> Running() const;  // copies all of them

 private:
  struct Session {
    explicit Session(CaptureSession&& state) : state(std::move(state)) {}
    CaptureSession state;
    ExecutionStart executions;
    ExecutionStopPolicy executions_end;
    std::optional<CaptureAllowance> allowance;  // nothing: not yet asked for, after a restart
    uint64_t allowance_due_ns = 0;              // monotonic, as all here; asked for anew then
    uint64_t quota_checked_ns = 0;
    bool unsaved = false;
    bool has_news = false;         // in what is unsaved: to be written soon
    bool must_be_durable = false;  // what is unsaved
    uint64_t saved_ns = 0;
    uint64_t again_ns = 0;  // when what could not be written down is tried again
  };
  using Sessions = std::map<CaptureId, std::unique_ptr<Session>>;
  // A snapshot that emptied a flight recorder's rings: which workers it selected, and when.
  struct Cut {
    CaptureSpec spec;
    uint64_t reference_ns = 0;
  };
  // An order to an agent that cannot be told a moment of its clock: sent at that moment.
  struct DelayedOrder {
    CaptureId capture_id;
    std::string agent_id;
    bool is_stop = false;
  };

  SessionTime Now() const;
  absl::Status CheckCurrent(const std::string& agent_id, ConnectionId from) const;
  Session* FindSession(const CaptureId& capture) const;
  // Takes the agent into the captures that it has a part in.
  absl::StatusOr<std::vector<ResumedCapture>> JoinAll(const AgentInfo& agent);
  ResumedCapture ResumeFor(const Session& session, const AgentInfo& agent);
  // Keeps one that has ended without an agent open, within the limits.
  void KeepOpen(std::unique_ptr<Session> session);
  void TickLate(const SessionTime& now);
  // Writes the record and says that it changed. A record that could not be written is written again
  // on a later Tick.
  void Save(Session& session, bool durable);
  void SaveSoon(Session& session);

  // Each of the next writes down what it decides before any agent is told, and fails with what
  // persisting returned: after a restart the capture is as was written, and those that were told
  // would do another thing.
  absl::Status Commit(Session& session, CaptureSession next);
  void AwaitReturning(CaptureSession& session, const SessionTime& now);
  void NoteFleet(CaptureSession& session, const SessionTime& now);
  absl::Status JudgeArming(Session& session);
  void RememberCut(const CaptureRecord& record);
  // Says of a snapshot that an earlier one took events out of the rings that it reaches back to.
  void WarnOfEarlierCut(const CaptureBegin& begin, CaptureSession& snapshot) const;
  absl::Status NotBegin(Session& session, CaptureSession next, std::string why);
  absl::Status ChooseExecutions(Session& session, uint64_t first);
  absl::Status Stop(Session& session, bool by_time);
  void TickRunning(Session& session, const SessionTime& now);
  std::string WhyOverQuota(Session& session, const SessionTime& now);

  // How the fleet is told of one moment: ahead of it, as a time of each host's own clock, or, where
  // that is not known, at that moment.
  CaptureBegin BeginFor(const AgentInfo& agent, const CaptureBegin& begin) const;
  // How far the clocks of all who are told of it can be from that moment; 0: of none is it known.
  uint64_t WidestBound(const CaptureRecord& record, const CaptureBegin& begin) const;
  void SendBegin(const CaptureRecord& record, uint64_t in_ns);
  void SendStop(const CaptureRecord& record, uint64_t in_ns);
  void SendToAll(const CaptureRecord& record, const CaptureOrder& order);
  void Delay(uint64_t in_ns, DelayedOrder order);
  void SendDelayed(uint64_t now_monotonic_ns);

  const Clock& clock_;
  const uint64_t restored_monotonic_ns_;  // since when agents of an earlier run can return
  Random& random_;
  CoordinatorOutputs outputs_;
  CoordinatorInputs inputs_;
  AgentRegistry registry_;
  Sessions running_;
  Sessions late_;                                  // ended, and open for agents that were away
  std::map<CaptureId, Cut> cuts_;                  // the last of each running flight recorder
  std::multimap<uint64_t, DelayedOrder> delayed_;  // by when, monotonic
  uint64_t write_ns_ = 0;                          // how long the last durable write took
};

}  // namespace neurontrace
