// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/clock/evidence_link.h"
#include "agent/control/control_observer.h"
#include "agent/control/control_session.h"
#include "agent/control/control_stream.h"
#include "agent/spool/spool.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/upload_stream.h"
#include "agent/upload/uploader.h"
#include "lib/base/clock.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/agent_info.h"
#include "simulate/replay_host.h"
#include "simulate/replay_source.h"

namespace neurontrace {

// The agent of one simulated instance: the spool, queue, uploader, control session and evidence
// link of neurontrace-agent, connected as `Agent` connects them, with a ReplaySource in place of
// taps and a ReplayHost in place of the machine's clocks. So what an aggregator gets was encoded,
// kept on disk, sent and acknowledged by the code of an agent. Lives on the sequence of its runner.
class ReplayAgent final : private ControlObserver, private EvidenceLink::AccessListener {
 public:
  // How it reaches the aggregator.
  struct Connectors {
    UploadConnector upload;
    ControlConnector control;
    EvidenceConnector evidence;
  };
  // Shared by many agents. All of it outlives them.
  struct Shared {
    const FleetPlan& plan;
    FleetRows& rows;
    const std::vector<CachedShape>& shapes;
    const Clock& clock;  // the machine's
    Random& random;
    FileSystem& files;
    TaskRunner& io;  // waits for the disk
    TaskRunner& runner;
    std::atomic<uint64_t>& waiting;  // see ReplaySource
  };
  struct Options {
    AgentInfo info;
    std::string job;
    uint32_t instance = 0;
    std::vector<uint32_t> ranks;  // of the instance, without missing ones
    std::string spool_directory;
    ReplayReference reference;
  };
  // What it has done so far, over all captures.
  struct State {
    bool is_welcome = false;    // at an aggregator
    bool has_sent_all = false;  // chunks and clock evidence, and all of it is acknowledged
    bool is_silent = false;     // its captures never finish
    std::string problem;        // of its spool; empty: none
    ReplaySource::Counts played;
    uint64_t events_stored = 0;   // acknowledged
    uint64_t events_refused = 0;  // by the aggregator, for good
    uint64_t events_lost = 0;     // otherwise, on the way
  };

  ReplayAgent(const Shared& shared, const Connectors& connectors, const Options& options);
  ~ReplayAgent() override;

  // Opens the spool and connects. Called once. Fails with the error of the spool.
  absl::Status Start();
  // See ReplaySource::Take.
  void Take(ReplayBatch batch);
  // Closes open chunks, so that all that was taken is on its way.
  void Flush() { source_.Flush(); }

  // Returns whether a worker records in the capture; with an empty id, in any.
  bool Records(const CaptureId& capture_id) const { return source_.Records(capture_id); }
  // Returns whether it has no part in the capture, any more or at all.
  bool IsFinished(const CaptureId& capture_id) const;
  State state() const;

 private:
  // ControlObserver: as Agent.
  void OnWelcome(const std::set<CaptureId>& captures) override;
  void OnConnectionLost() override { uploader_.SetEnabled(false); }
  absl::Status CheckAggregator(const std::string& aggregator_id) override;
  bool WasWronglyResumed(const CaptureResume& resume) override;
  void OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) override;
  void OnCaptureStopping() override { SendEvidence(); }
  void OnCaptureOver(const CaptureId& capture_id) override;
  void AddSpoolCursors(CaptureResume& resume) override;
  bool IsDelivered(const CaptureId& capture_id) const override;
  // EvidenceLink::AccessListener: the evidence is simulated, so nothing is probed.
  void OnAccess(const std::optional<ProbeAccess>&) override {}
  void OnLost() override {}

  void SendEvidence();
  void SendEvidencePeriodically();

  TaskRunner& runner_;
  Spool spool_;
  DeliveryQueue queue_;
  Uploader uploader_;
  ControlSession control_;
  ReplayHost host_;
  EvidenceLink evidence_;
  ReplaySource source_;
  bool is_last_ = false;  // the run is over
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
