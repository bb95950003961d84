// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Counts clock evidence by its outcome (docs/operator/metrics.md). The registry owns the metrics.
// Any thread.
struct ClockMetrics {
  // Creates all metrics, so that each is exported with 0 from the start.
  explicit ClockMetrics(prometheus::Registry& registry);

  prometheus::Counter& batches_stored;
  prometheus::Counter& bytes_stored;
  // Batches that agents sent and that were not stored: invalid ones, and ones beyond the hourly
  // limit of their instance.
  prometheus::Counter& batches_refused;
  prometheus::Counter& batches_over_limit;
  // Batches that were deleted because of their age, see --clock-evidence-hours.
  prometheus::Counter& batches_pruned;
  prometheus::Counter& own_batches_dropped;  // of the aggregator's own clocks
  prometheus::Counter& store_errors;
  prometheus::Counter& questions_answered;  // in gRPC calls
  // The present state: open report calls, and the current epoch of the reference timescale.
  prometheus::Gauge& calls;
  prometheus::Gauge& reference_epoch;
};

// The only thread that writes clock evidence. Everything that arrives within a tenth of a second is
// one write, so that thousands of agents cause few syncs. Its queue is bounded by its callers, as
// each one waits for its batch.
// thread: clock evidence: writes the clock evidence of agents in groups
class ClockEvidenceWriter {
 public:
  // Receives the result of the write that contained the batch. All batches of one write have the
  // same result.
  using Done = std::function<void(const absl::Status&)>;

  // Both must outlive this.
  ClockEvidenceWriter(ClockEvidenceStore& store, ClockMetrics& metrics);
  // Writes what was submitted, then ends the thread.
  ~ClockEvidenceWriter();
  ClockEvidenceWriter(const ClockEvidenceWriter&) = delete;
  ClockEvidenceWriter& operator=(const ClockEvidenceWriter&) = delete;

  // Calls `done` on the writer's thread once the batch is durable or has failed; `done` must be
  // quick. Does not wait. Any thread.
  void Submit(ClockEvidenceBatch batch, Done done);

 private:
  // Writes until it is closing and nothing is left to write; the thread's function.
  void Run();

  ClockEvidenceStore& store_;
  ClockMetrics& metrics_;

  Mutex mutex_;
  CondVar submitted_;
  // The next write; exchanged for an empty list when the writer takes it.
  std::vector<ClockEvidenceBatch> batches_ NT_GUARDED_BY(mutex_);
  std::vector<Done> dones_ NT_GUARDED_BY(mutex_);  // one for each batch
  bool closing_ NT_GUARDED_BY(mutex_) = false;
  // Last, because it uses all other members.
  std::thread thread_;
};

}  // namespace neurontrace
