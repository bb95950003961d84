// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tap/agent_connection.h"
#include "tap/capture_spec.h"
#include "tap/facts_writer.h"
#include "tap/nrt_library.h"
#include "tap/ring_writer.h"
#include "tap/runtime_gate.h"
#include "tap/runtime_trace.h"
#include "tap/shared_buffer.h"
#include "tap/worker_facts.h"

// The work of the tap's thread: follows the runtime's life cycle, serves the agent's commands, runs
// the trace and keeps the shared buffer's header and facts up to date. Step() does everything that
// is due and never waits; the thread sleeps between steps. One thread, except for CloseDescriptors.
// All times are ns of CLOCK_MONOTONIC.
namespace neurontrace::tap {

class Tap {
 public:
  // A capture whose agent has been away for this long is stopped.
  static constexpr uint64_t kOrphanTimeoutNs = kTapOrphanTimeoutSeconds * kNsPerSecond;
  // A refused start is tried again after this time, each time twice as late.
  static constexpr uint64_t kStartRetryFirstNs = 5 * kNsPerSecond;
  static constexpr uint64_t kStartRetryMaxNs = 60 * kNsPerSecond;
  // After a capture the ring's memory is freed once the agent has committed all of it. This is
  // checked after this time, and then each time twice as late.
  static constexpr uint64_t kReleaseMemoryFirstNs = kNsPerSecond;
  static constexpr uint64_t kReleaseMemoryMaxNs = 64 * kNsPerSecond;
  // Packets served in one step, so that a busy agent cannot keep the trace from being fetched.
  static constexpr uint32_t kCommandsPerStep = 16;
  static constexpr uint64_t kAheadMaxNs = kTapAheadMaxSeconds * kNsPerSecond;
  // A tap that began a capture at a planned moment tells its agent only this long after it. The
  // taps of one machine wake at the same moment, and none should wait for a processor while agents
  // handle the news of the others.
  static constexpr uint64_t kQuietAfterBeginNs = 5 * kNsPerMs;

  Tap() = default;
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // Creates the shared buffer. Returns false if the system refuses. All pointers must outlive the
  // tap.
  bool Open(RuntimeGate* gate, WorkerFacts* worker_facts, const NrtLibrary* library,
            const TapClock* clock, const char* socket_path, uint64_t ring_bytes);

  // Does what is due. Returns when to be called next at the latest, or kNeverNs.
  uint64_t Step();
  // Waits until `deadline_ns`, a wake-up of the gate, or a packet of the agent.
  void Sleep(uint64_t deadline_ns);

  // Called in a forked child: closes the inherited descriptors of the parent's tap, which is never
  // used again there. The mapping of the buffer is not inherited (MADV_DONTFORK).
  void CloseDescriptors();

  const SharedBuffer& buffer() const { return buffer_; }

 private:
  // Why the runtime refused the last start.
  enum class Refusal : uint8_t { kNone, kBusy, kFailed };
  // A COLLECT that waits for its time.
  struct Collection {
    uint8_t capture_id[kTapCaptureIdBytes];
    uint64_t at_ns;
  };

  // The parts of a step, in the order of Step().
  //
  // Stops the trace if an application thread waits for the runtime, if the runtime is closed, or if
  // another profiler is active.
  void ReleaseIfAsked();
  // Writes a LIFECYCLE record for each nrt_init, nrt_close and exit since the last step. A new
  // runtime, or a change of the application's profilers, ends the pause after a refused start.
  void FollowLifecycle();
  void WriteLifecycle(TapLifecycleEvent event);
  // Connects if that is due, serves at most kCommandsPerStep packets and sends waiting answers.
  void ServeAgent(uint64_t now_ns);
  // Serves the packet of `size` bytes in packet_. An invalid packet, or one beyond the permitted
  // rate, ends the connection.
  void ServePacket(long size, uint64_t now_ns);
  // Execute command_. Each sends an answer; a STOP or COLLECT that has to wait for its time is
  // answered again once it is done.
  void HandleStart(uint64_t now_ns);
  void HandleStop(uint64_t now_ns);
  void HandleCollect(uint64_t now_ns);
  bool StopCollection(const uint8_t* capture_id, uint64_t now_ns);
  // Answers the command that is being served.
  void Answer(TapResult result, const uint8_t* capture_id, const char* detail, uint64_t now_ns);
  // Sends a status about `command`, also outside of its handler.
  void SendStatus(TapMessageType command, TapResult result, const uint8_t* capture_id,
                  const char* detail, uint64_t now_ns);
  // Ends the wanted capture and answers its STOP.
  void StopCapture(uint64_t now_ns);
  void StopIfDue(uint64_t now_ns);
  void CollectIfDue(uint64_t now_ns);
  // Remembers the id of the collection that has ended, so that a repeated COLLECT succeeds, and
  // answers it.
  void RecordCollected(uint64_t now_ns);
  void ForgetCollections(uint64_t now_ns);
  // Return whether a collection waits for its time, or is among the last kTapCollectsMax that
  // ended.
  bool IsWaiting(const uint8_t* capture_id) const;
  bool WasCollected(const uint8_t* capture_id) const;
  // Returns when the next waiting collection is due; kNeverNs if there is none, or one is in
  // progress.
  uint64_t NextCollectionNs() const;
  void StopOrphan(uint64_t now_ns);
  void StartIfRequested(uint64_t now_ns);
  // Turns the outcome of a start into the refusal, its text and the time of the next attempt.
  void RecordStart(const RuntimeTrace::Start& start, uint64_t now_ns);
  // Drains the trace, stops it and records its end. No effect if none is running.
  void StopTrace(TapStopReason reason);
  void DrainIfDue(uint64_t now_ns);
  // Records the end of a trace that can no longer be fetched.
  void LoseTrace(uint64_t now_ns);
  void RetryStartLater(Refusal refusal, uint64_t now_ns);
  // Returns the state by the gate, the trace and the last refusal. It is for people and agents: no
  // decision of the tap depends on it.
  TapState CurrentState() const;
  // Writes a changed state or changed facts to the shared buffer. Reports a changed state to the
  // agent.
  void PublishState(uint64_t now_ns);
  // Sets detail_ for the states that need an explanation, and clears one that no longer applies.
  void ExplainState();
  // Composes and publishes all facts. Those of the runtime are gathered once after each nrt_init.
  void PublishFacts();
  // Wakes the agent if it sleeps and there are new records or facts.
  void NotifyConsumer();
  // Frees the ring's pages once no trace writes to it and the agent has committed everything.
  void ReleaseMemory(uint64_t now_ns);
  // Returns when the next step has work to do even without a wake-up or a packet; kNeverNs: never.
  uint64_t NextDeadlineNs() const;

  RuntimeGate* gate_ = nullptr;
  WorkerFacts* worker_facts_ = nullptr;
  const NrtLibrary* library_ = nullptr;
  const TapClock* clock_ = nullptr;

  SharedBuffer buffer_;
  RingWriter ring_;
  RuntimeTrace trace_;
  FactsWriter facts_;
  RuntimeFacts runtime_facts_;
  AgentConnection connection_;

  // The gate as this step observed it, and how much of it has been recorded.
  RuntimeGate::View view_ = {};
  uint32_t inits_seen_ = 0;
  uint32_t closes_seen_ = 0;
  bool exit_reported_ = false;  // the LIFECYCLE record of exit has been written
  uint8_t profilers_seen_ = 0;

  bool wanted_ = false;   // the agent wants spec_ recorded
  bool resumed_ = false;  // spec_'s trace ran before
  Refusal refusal_ = Refusal::kNone;
  uint64_t begin_at_ns_ = 0;        // the trace does not start before
  uint64_t quiet_until_ns_ = 0;     // no state is published and no agent is woken before
  uint64_t stop_at_ns_ = kNeverNs;  // of what is wanted
  uint64_t start_at_ns_ = 0;        // a refused start is not repeated before
  uint64_t start_pause_ns_ = kStartRetryFirstNs;
  NrtStatus nrt_status_ = kNrtSuccess;  // of the last start, or of the fetch that lost the trace
  CaptureSpec spec_;                    // valid while wanted_

  uint32_t collection_count_ = 0;
  Collection collections_[kTapCollectsMax] = {};  // that wait for their time
  Collection collecting_ = {};                    // while trace_ does
  // The last ids that were collected: an agent that was restarted repeats its commands.
  uint32_t collected_next_ = 0;
  uint8_t collected_[kTapCollectsMax][kTapCaptureIdBytes] = {};

  TapState state_ = TapState::kNotInitialised;
  bool state_published_ = false;
  uint64_t release_memory_at_ns_ = kNeverNs;  // when ReleaseMemory checks the ring next
  uint64_t release_memory_pause_ns_ = kReleaseMemoryFirstNs;
  uint64_t facts_version_ = 0;  // WorkerFacts::version() that was published last
  bool facts_stale_ = true;
  bool facts_are_news_ = false;                 // published, and the agent is not yet notified
  uint64_t notified_pos_ = 0;                   // write_pos at the last NotifyConsumer
  char detail_[kTapStatusDetailBytesMax] = {};  // explains state_ to people
  AgentCommand command_;                        // valid while a packet is served, like packet_
  uint8_t packet_[kTapMessageBytesMax];
};

// Returns the name of a state as the facts and the agent show it.
const char* TapStateName(TapState state);

}  // namespace neurontrace::tap
