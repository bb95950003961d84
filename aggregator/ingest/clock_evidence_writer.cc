// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/clock_evidence_writer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace neurontrace {
namespace {

constexpr std::chrono::milliseconds kGatherTime{100};

}  // namespace

ClockEvidenceWriter::ClockEvidenceWriter(ClockEvidenceStore& store, ClockMetrics& metrics)
    : store_(store), metrics_(metrics), thread_([this] { Run(); }) {}

ClockEvidenceWriter::~ClockEvidenceWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  submitted_.notify_all();
  thread_.join();
}

void ClockEvidenceWriter::Submit(ClockEvidenceBatch batch, Done done) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    dones_.push_back(std::move(done));
  }
  submitted_.notify_all();
}

void ClockEvidenceWriter::Run() {
  for (;;) {
    std::vector<ClockEvidenceBatch> batches;
    std::vector<Done> dones;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [this] { return closing_ || !batches_.empty(); });
      if (batches_.empty()) return;
      submitted_.wait_for(lock, kGatherTime, [this] { return closing_; });
      batches.swap(batches_);
      dones.swap(dones_);
    }
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
