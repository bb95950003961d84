// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_writer.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace neurontrace {
namespace {

constexpr uint64_t kLogIntervalNs = 5'000'000'000;  // a full disk fails many times a second

}  // namespace

ChunkWriter::ChunkWriter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                         const Clock& clock)
    : store_(store), budget_(budget), metrics_(metrics), clock_(clock), thread_([this] {
        Run();
      }) {}

ChunkWriter::~ChunkWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

void ChunkWriter::Submit(ReceivedChunk chunk, Done done) {
  {
    const std::lock_guard lock(mutex_);
    gathering_.chunks.push_back(std::move(chunk));
    gathering_.dones.push_back(std::move(done));
  }
  submitted_.notify_one();
}

void ChunkWriter::Run() {
  while (true) {
    Group group;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [this] { return closing_ || !gathering_.chunks.empty(); });
      if (gathering_.chunks.empty()) return;
      std::swap(group, gathering_);
    }
    Commit(group);
  }
}

void ChunkWriter::Commit(Group& group) {
  const uint64_t begin_ns = clock_.MonotonicNs();
  const auto results = store_.PutBatch(group.chunks);
  metrics_.commit_seconds.Observe(static_cast<double>(clock_.MonotonicNs() - begin_ns) * 1e-9);
  metrics_.commit_chunks.Observe(static_cast<double>(group.chunks.size()));
  if (!results.ok()) {
    metrics_.store_errors.Increment();
    LogFailure(results.status(), group.chunks.size());
  }
  size_t bytes = 0;
  for (size_t i = 0; i < group.chunks.size(); ++i) {
    const ReceivedChunk& chunk = group.chunks[i];
    bytes += chunk.bytes();
    if (results.ok() && (*results)[i].outcome == PutOutcome::kStored) {
      metrics_.chunks_stored.Increment();
      metrics_.events_stored.Increment(chunk.header.event_count);
      metrics_.bytes_stored.Increment(static_cast<double>(chunk.bytes()));
    }
    if (results.ok()) {
      group.dones[i]((*results)[i]);
    } else {
      group.dones[i](results.status());
    }
  }
  budget_.Release(bytes);
  metrics_.bytes_in_flight.Set(static_cast<double>(budget_.bytes()));
}

void ChunkWriter::LogFailure(const absl::Status& status, size_t chunks) {
  const uint64_t now_ns = clock_.MonotonicNs();
  if (logged_monotonic_ns_ != 0 && now_ns < logged_monotonic_ns_ + kLogIntervalNs) return;
  logged_monotonic_ns_ = now_ns;
  SPDLOG_WARN("{} chunks were not stored and their agents are asked to send them again: {}", chunks,
              std::string(status.message()));
}

}  // namespace neurontrace
