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

// Counts clock evidence by its outcome; docs/operator/metrics.md describes the metrics, which the
// registry owns. Any thread.
struct ClockMetrics {
  explicit ClockMetrics(prometheus::Registry& registry);

  prometheus::Counter& batches_stored;
  prometheus::Counter& bytes_stored;
  prometheus::Counter& batches_refused;
  prometheus::Counter& batches_over_limit;
  prometheus::Counter& batches_pruned;
  prometheus::Counter& own_batches_dropped;  // of the aggregator's own clocks
  prometheus::Counter& store_errors;
  prometheus::Counter& questions_answered;  // in gRPC calls
  prometheus::Gauge& calls;
  prometheus::Gauge& reference_epoch;
};

// The one thread that writes clock evidence. What gathers for a tenth of a second is one write, so
// that thousands of agents cost few syncs. Bounded by its callers: each waits for its batch.
// thread: clock evidence: writes the clock evidence of agents in groups
class ClockEvidenceWriter {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Both outlive this.
  ClockEvidenceWriter(ClockEvidenceStore& store, ClockMetrics& metrics);
  // Writes what was submitted, then ends.
  ~ClockEvidenceWriter();
  ClockEvidenceWriter(const ClockEvidenceWriter&) = delete;
  ClockEvidenceWriter& operator=(const ClockEvidenceWriter&) = delete;

  // Any thread. `done` is called on the writer's, once the batch is durable or could not be
  // written, and must be quick.
  void Submit(ClockEvidenceBatch batch, Done done);

 private:
  void Run();

  ClockEvidenceStore& store_;
  ClockMetrics& metrics_;

  Mutex mutex_;
  CondVar submitted_;
  std::vector<ClockEvidenceBatch> batches_ NT_GUARDED_BY(mutex_);
  std::vector<Done> dones_ NT_GUARDED_BY(mutex_);  // one for each batch
  bool closing_ NT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace neurontrace
