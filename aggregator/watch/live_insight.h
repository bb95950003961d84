// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "aggregator/operator/live_insight.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/watch/fleet_view.h"
#include "aggregator/watch/verdict_observer.h"
#include "aggregator/watch/verdict_tracker.h"
#include "aggregator/watch/watch_metrics.h"
#include "aggregator/watch/watch_queue.h"
#include "aggregator/watch/watched_job.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/watch_limits.h"
#include "neurontrace/v1/insight.pb.h"

namespace neurontrace {

// Says which ranks are slow or hung while the fleet runs: reads the chunks of watches as they are
// stored, and judges every limits::kWatchJudgeMinNs, or less often if that takes long. Has a thread
// of a lower priority, so that storing chunks is not slowed down; a queue that is full drops
// chunks, counts them, and their cores are refused. Nothing of it is stored: a restart begins with
// the next chunks.
// thread: watch: reads stored chunks of watches and makes verdicts of them
class LiveInsight final : public LiveInsightSource, public CaptureObserver {
 public:
  // All of them must outlive this.
  struct Deps {
    prometheus::Registry& registry;
    const Clock& clock;
    const SessionClocks& clocks;  // reference time
    TaskRunner& sequence;         // on which observers are called
  };
  explicit LiveInsight(const Deps& deps);
  // Calls End.
  ~LiveInsight() override;
  LiveInsight(const LiveInsight&) = delete;
  LiveInsight& operator=(const LiveInsight&) = delete;

  // Adds an observer, which must outlive the tasks of the sequence. Called before Begin.
  void AddObserver(VerdictObserver& observer) { observers_.push_back(&observer); }
  // Starts the thread, and ends it for good.
  void Begin();
  void End();

  // Takes a chunk that was stored. Copies the compressed columns of a chunk of a watch, and ignores
  // all others. Any thread.
  void OnStored(const ReceivedChunk& chunk);
  // Learns which watches record, and what is known of their workers. On the coordinator's sequence,
  // several times a second; looks as often as is judged.
  void Tick(const Coordinator& coordinator);
  // CaptureObserver: makes the next Tick look when a watch begins or ends.
  void OnCaptureChanged(const CaptureRecord& record) override;
  // Does the same with a view that the caller has made. On the coordinator's sequence.
  void SetView(FleetView view);

  // Implements LiveInsightSource.
  absl::StatusOr<v1::InsightReport> Now(const std::string& job) override;

  // Reads what has come, waiting for it up to `patience`, and judges if it is time. Called by the
  // thread; tests that do not call Begin call it instead.
  void RunRound(std::chrono::nanoseconds patience);

 private:
  // A job of a watch.
  struct Watched {
    explicit Watched(const std::string& job) : cores(std::make_unique<WatchedJob>(job)) {}
    std::unique_ptr<WatchedJob> cores;
    VerdictTracker tracker;
    uint64_t window_began_ns = 0;            // monotonic
    uint64_t window_began_reference_ns = 0;  // reference time
  };
  using JobKey = std::pair<CaptureId, std::string>;

  void Run();
  void Read(const WatchedChunk& chunk);
  // Returns the job of the chunk's worker; null if it is unknown, or beyond a limit.
  Watched* JobOf(const WatchedChunk& chunk);
  void JudgeAll(uint64_t now_ns);
  // Judges one job. Adds to the numbers of verdicts, and returns the number of refused cores.
  size_t JudgeJob(const JobKey& key, Watched& watched, uint64_t now_ns,
                  std::map<VerdictKind, uint32_t>& counts);
  void StartWindow(const JobKey& key, Watched& watched, uint64_t now_ns);
  // Logs what began and ended, and tells the observers.
  void Announce(const JobKey& key, const Watched& watched, const InsightReport& report,
                const VerdictTracker::Changes& changes, std::span<const std::string> texts);
  // Forgets jobs of watches that are over.
  void ForgetEnded();
  // Returns the cores of a job with their present ranks.
  static std::vector<InsightCore> CoresOf(const WatchedJob& job);

  const Deps deps_;
  std::vector<VerdictObserver*> observers_;
  WatchQueue queue_;
  std::atomic<bool> has_watches_ = false;
  // On the sequence: when Tick looks next, and the watches that it saw.
  uint64_t view_due_ns_ = 0;  // monotonic
  std::set<CaptureId> viewed_;

  // Used by the thread only, down to the mutex.
  WatchMetrics metrics_;
  std::map<JobKey, Watched> jobs_;
  absl::flat_hash_map<std::pair<CaptureId, WorkerIdentity>, std::string> job_of_worker_;
  std::shared_ptr<const FleetView> current_view_;
  DecodedChunk decoded_;
  std::string columns_;                    // uncompressed; decoded_ points into it
  CoreFeed::Counters forgotten_counters_;  // of jobs that are no longer there
  uint64_t not_followed_ = 0;              // as above
  uint64_t judge_due_ns_ = 0;              // monotonic
  size_t cores_ = 0;

  mutable Mutex mutex_;
  std::shared_ptr<const FleetView> view_ NT_GUARDED_BY(mutex_) = std::make_shared<FleetView>();
  // Reference time of the first view; 0: none yet.
  uint64_t since_ns_ NT_GUARDED_BY(mutex_) = 0;
  std::map<JobKey, v1::InsightReport> reports_ NT_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace neurontrace
