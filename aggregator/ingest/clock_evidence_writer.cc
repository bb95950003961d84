// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/clock_evidence_writer.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <chrono>
#include <utility>

#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// Turns the reports of a whole fleet into at most ten syncs a second.
constexpr std::chrono::milliseconds kGatherTime{100};

}  // namespace

ClockMetrics::ClockMetrics(prometheus::Registry& registry)
    : batches_stored(MakeCounter(registry, "neurontrace_aggregator_clock_batches_stored_total",
                                 "Batches of clock evidence stored durably")),
      bytes_stored(MakeCounter(registry, "neurontrace_aggregator_clock_bytes_stored_total",
                               "Bytes of clock evidence stored durably")),
      batches_refused(MakeCounter(registry, "neurontrace_aggregator_clock_batches_refused_total",
                                  "Invalid batches of clock evidence")),
      batches_over_limit(
          MakeCounter(registry, "neurontrace_aggregator_clock_batches_over_limit_total",
                      "Batches of clock evidence beyond the storage limit of their instance")),
      batches_pruned(MakeCounter(registry, "neurontrace_aggregator_clock_batches_pruned_total",
                                 "Batches of clock evidence removed because of their age")),
      own_batches_dropped(
          MakeCounter(registry, "neurontrace_aggregator_clock_own_batches_dropped_total",
                      "Batches of the aggregator's own clock evidence that could not be stored")),
      store_errors(MakeCounter(registry, "neurontrace_aggregator_clock_store_errors_total",
                               "Failed writes of clock evidence to the store")),
      questions_answered(MakeCounter(registry,
                                     "neurontrace_aggregator_clock_questions_answered_total",
                                     "Clock probes answered in gRPC calls")),
      calls(MakeGauge(registry, "neurontrace_aggregator_clock_calls",
                      "Agents that currently report clock evidence")),
      reference_epoch(MakeGauge(registry, "neurontrace_aggregator_reference_epoch",
                                "Current epoch of the reference timescale")) {}

ClockEvidenceWriter::ClockEvidenceWriter(ClockEvidenceStore& store, ClockMetrics& metrics)
    : store_(store), metrics_(metrics), thread_([this] { Run(); }) {}

// Batches that were submitted are still written and answered.
ClockEvidenceWriter::~ClockEvidenceWriter() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  submitted_.NotifyAll();
  thread_.join();
}

void ClockEvidenceWriter::Submit(ClockEvidenceBatch batch, Done done) {
  {
    const MutexLock lock(mutex_);
    batches_.push_back(std::move(batch));
    dones_.push_back(std::move(done));
  }
  submitted_.NotifyAll();
}

void ClockEvidenceWriter::Run() {
  for (;;) {
    std::vector<ClockEvidenceBatch> batches;
    std::vector<Done> dones;
    {
      const MutexLock lock(mutex_);
      submitted_.Wait(mutex_,
                      [this]() NT_REQUIRES(mutex_) { return closing_ || !batches_.empty(); });
      if (batches_.empty()) return;
      // Unlike chunks, evidence is not urgent, so the first batch always waits for others. Only the
      // destructor cuts the wait short.
      submitted_.WaitFor(mutex_, kGatherTime, [this]() NT_REQUIRES(mutex_) { return closing_; });
      batches.swap(batches_);
      dones.swap(dones_);
      assert(batches.size() == dones.size());
    }
    // Without the lock. A failed write is not retried here: the callers learn of it, and their
    // agents get no receipt.
    const absl::Status status = store_.Put(batches);
    if (status.ok()) {
      metrics_.batches_stored.Increment(static_cast<double>(batches.size()));
      for (const ClockEvidenceBatch& batch : batches) {
        metrics_.bytes_stored.Increment(static_cast<double>(batch.observations.size()));
      }
    } else {
      metrics_.store_errors.Increment();
      SPDLOG_WARN("clock evidence: {}", std::string(status.message()));
    }
    for (const Done& done : dones) done(status);
  }
}

}  // namespace neurontrace
