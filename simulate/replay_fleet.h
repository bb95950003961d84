// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/unsynced_file_system.h"
#include "lib/trace/ids.h"
#include "lib/wire/channel_security.h"
#include "simulate/replay_agent.h"

namespace neurontrace {

// What a replay takes of the machine. Estimates, on the safe side.
struct ReplayNeeds {
  uint64_t descriptors = 0;
  uint64_t memory_bytes = 0;
};
ReplayNeeds NeedsOfReplay(const FleetPlan& plan);
// Fails with RESOURCE_EXHAUSTED, naming the figures and the way out, if the machine has less.
absl::Status CheckReplayNeeds(const ReplayNeeds& needs, const ReplayNeeds& available);
// Returns what this process may still open and what memory the machine can give. Raises the limit
// of open files to the hard limit first. Fails with the errors of RaiseDescriptorLimit and of
// reading /proc/meminfo.
absl::StatusOr<ReplayNeeds> AvailableForReplay();

// The agents of all instances of a simulated fleet in one process, on a few threads. Each has its
// own connections to the aggregator, as on a machine of its own. Used by one thread, which is none
// of them.
// thread: replay: the agents of some simulated instances, on one event loop
// thread: replay disk: writes the spools of simulated instances
class ReplayFleet {
 public:
  struct Options {
    FleetPlan plan;  // its start is set by SetStart
    std::string aggregator;
    ChannelSecurity security;
    std::string spool_directory;  // a directory for each instance is made in it
    std::string run;              // is in the names of agents, boots and the job
  };
  // Sums over all agents.
  struct State {
    uint32_t agents = 0;
    uint32_t welcome = 0;    // accepted by an aggregator
    uint32_t recording = 0;  // with a worker that records in the capture
    uint32_t waiting = 0;    // with a part in the capture that is neither finished nor silent
    uint32_t silent = 0;
    uint32_t unsent = 0;  // with chunks or clock evidence that is not acknowledged
    std::string problem;  // of one of the spools; empty: none
    ReplaySource::Counts played;
    uint64_t events_stored = 0;
    uint64_t events_refused = 0;
    uint64_t events_lost = 0;
  };

  explicit ReplayFleet(Options options);
  // Ends the connections at once and joins the threads. What is in the spools stays there.
  ~ReplayFleet();
  ReplayFleet(const ReplayFleet&) = delete;
  ReplayFleet& operator=(const ReplayFleet&) = delete;

  // Asks the aggregator for its timescale, then starts the agents, which connect by themselves.
  // Fails with UNAVAILABLE and the reason if the aggregator does not answer within 10 s, and with
  // the error of a spool.
  absl::Status Start();
  // Sets when the run begins, before the first batch.
  void SetStart(uint64_t start_ns) { options_.plan.start_ns = start_ns; }
  // Hands each instance its batch. Does not wait; see waiting().
  void Deliver(std::vector<ReplayBatch> batches);
  // Has the agents close their open chunks, of all batches that they have taken. Does not wait.
  void Flush();
  // Returns how many events of batches no agent has taken yet. Cheap.
  uint64_t waiting() const { return waiting_; }
  // Asks all agents, with respect to a capture; an empty id means any. Fails with DEADLINE_EXCEEDED
  // if a thread is stuck.
  absl::StatusOr<State> GetState(const CaptureId& capture_id);

  // The key of the workers' job, by which captures select them.
  std::string job() const { return "simulated-" + options_.run; }

 private:
  // A thread with its agents.
  struct Lane;

  absl::StatusOr<ReplayReference> AskReference();
  absl::Status StartAgents(Lane& lane, const ReplayReference& reference);
  std::unique_ptr<ReplayAgent> MakeAgent(Lane& lane, uint32_t instance,
                                         const ReplayReference& reference);

  Options options_;
  const SystemClock clock_;
  SystemRandom random_;
  SystemFileSystem files_;
  UnsyncedFileSystem unsynced_files_{files_};  // nobody needs the spools after a crash
  std::atomic<uint64_t> waiting_ = 0;
  EventLoop io_loop_;
  std::thread io_thread_;
  std::vector<std::vector<uint32_t>> ranks_;  // by instance, without missing ones
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace neurontrace
