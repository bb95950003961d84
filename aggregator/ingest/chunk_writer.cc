// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_writer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace neurontrace {
namespace {

// Groups begin at least this far apart: under a steady load one sync then serves several chunks,
// and a chunk that comes alone waits for nothing.
constexpr std::chrono::milliseconds kGroupInterval{2};

}  // namespace

ChunkWriter::ChunkWriter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                         const Clock& clock, OnHealth on_health)
    : store_(store),
      budget_(budget),
      metrics_(metrics),
      clock_(clock),
      on_health_(std::move(on_health)),
      thread_([this] { Run(); }) {}

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
  std::chrono::steady_clock::time_point next_begin;
  while (true) {
    Group group;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [this] { return closing_ || !gathering_.chunks.empty(); });
      if (gathering_.chunks.empty()) return;
      submitted_.wait_until(lock, next_begin, [this] { return closing_; });
      next_begin = std::chrono::steady_clock::now() + kGroupInterval;
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
  if (!results.ok()) metrics_.store_errors.Increment();
  NoteHealth(results.status());
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

// A full disk fails many times a second: only the changes are said.
void ChunkWriter::NoteHealth(const absl::Status& status) {
  if (status.ok() == healthy_) return;
  healthy_ = status.ok();
  if (healthy_) {
    SPDLOG_INFO("chunks are stored again");
  } else {
    SPDLOG_WARN("chunks are not stored, and their agents asked to send them again: {}",
                std::string(status.message()));
  }
  on_health_(status);
}

}  // namespace neurontrace
