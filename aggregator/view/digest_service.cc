// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_service.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "aggregator/timeline/store_chunk_source.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// From the end of one pass to the start of the next.
constexpr std::chrono::seconds kPassInterval(2);
// How long the thread rests after each digest: this many times what it took, up to the limit. As
// long as it took cost ingest on two processors 7 % (docs/developer/benchmarks.md).
constexpr int kRestFactor = 2;
constexpr std::chrono::milliseconds kRestMax(200);
// Linux gives it a tenth of what others get of a processor. Not less: it holds locks of the
// database for moments, and whoever waits for them waits until it runs again.
constexpr int kNiceness = 10;

uint64_t SteadyNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

DigestService::DigestService(const Deps& deps)
    : store_(deps.store),
      builder_(deps.store.digests()),
      built_(MakeCounter(deps.registry, "neurontrace_aggregator_digests_built_total",
                         "Digests of stored chunks made for the page")),
      written_(MakeCounter(deps.registry, "neurontrace_aggregator_digest_bytes_written_total",
                           "Bytes of digests written to the store")),
      failed_(MakeCounter(deps.registry, "neurontrace_aggregator_digests_failed_total",
                          "Attempts to make a stream's digests that failed")),
      bytes_(MakeGauge(deps.registry, "neurontrace_aggregator_digest_bytes",
                       "Bytes of all digests in the store")),
      behind_(MakeGauge(deps.registry, "neurontrace_aggregator_digests_behind_chunks",
                        "Stored chunks without a digest, which the page reads one by one")) {}

DigestService::~DigestService() { End(); }

void DigestService::Begin() {
  rests_ = true;
  thread_ = std::thread([this] { Run(); });
}

void DigestService::End() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
  }
  ending_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool DigestService::IsEnding() const {
  const MutexLock lock(mutex_);
  return is_ending_;
}

void DigestService::Run() {
  // On Linux the priority is that of the thread. Without it digests are made all the same.
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness) != 0) {
    SPDLOG_WARN("digests are made at normal priority: setpriority failed");
  }
  while (!IsEnding()) {
    RunPass();
    MutexLock lock(mutex_);
    ending_.WaitFor(mutex_, kPassInterval, [this]() NT_REQUIRES(mutex_) { return is_ending_; });
  }
}

// Called after each group of chunks.
bool DigestService::Continue() {
  if (!rests_) return true;
  const auto took = std::chrono::nanoseconds(SteadyNs() - step_began_ns_);
  bool is_ending = false;
  {
    MutexLock lock(mutex_);
    is_ending =
        ending_.WaitFor(mutex_, std::min<std::chrono::nanoseconds>(kRestFactor * took, kRestMax),
                        [this]() NT_REQUIRES(mutex_) { return is_ending_; });
  }
  step_began_ns_ = SteadyNs();
  return !is_ending;
}

void DigestService::RunPass() {
  const std::vector<CaptureId> ids = store_.captures().Ids();
  std::erase_if(
      known_, [&](const auto& entry) { return std::ranges::find(ids, entry.first) == ids.end(); });
  const auto free_bytes = store_.free_bytes();
  const bool has_room = free_bytes.ok() && *free_bytes >= limits::kDigestFreeBytesMin;
  if (!has_room || store_.must_reopen()) return;
  uint64_t behind = 0;
  for (const CaptureId& id : ids) {
    if (IsEnding()) return;
    const auto record = store_.captures().Get(id);
    const auto bytes = store_.chunks().BytesOf(id);
    if (!record.ok() || !bytes.ok()) continue;  // deleted since, or damaged: its readers say so
    Known& known = known_[id];
    const bool has_changed =
        known.bytes != *bytes || known.has_ended != HasEnded(record->state) || !known.is_done;
    if (has_changed) {
      known.bytes = *bytes;
      known.has_ended = HasEnded(record->state);
      if (const absl::Status status = BuildCapture(*record, known); !status.ok()) {
        failed_.Increment();
        SPDLOG_WARN("digests of capture {}: {}", id.ToString(), std::string(status.message()));
      }
      // Deleted meanwhile: nobody else would remove what was just made.
      if (absl::IsNotFound(store_.captures().Get(id).status())) {
        store_.digests().Delete(id).IgnoreError();
        continue;
      }
    }
    behind += known.behind;
  }
  behind_.Set(static_cast<double>(behind));
  bytes_.Set(static_cast<double>(store_.digests().Bytes()));
}

absl::Status DigestService::BuildCapture(const CaptureRecord& record, Known& known) {
  ASSIGN_OR_RETURN(const CaptureDescription capture,
                   StoreChunkSource(store_.OpenSnapshot(record.id), record).Describe());
  known.behind = 0;
  known.is_done = true;
  bool is_logged = false;
  for (const StreamDescription& stream : capture.streams) {
    step_began_ns_ = SteadyNs();
    // One for each stream, as a snapshot keeps what is deleted meanwhile on the disk.
    StoreChunkSource source(store_.OpenSnapshot(record.id), record);
    const auto built = builder_.BuildStream(source, record.id, stream, known.has_ended,
                                            known.retry_at[stream.number], *this);
    if (built.ok()) {
      built_.Increment(static_cast<double>(built->digests));
      written_.Increment(static_cast<double>(built->bytes));
      known.behind += built->chunks_left;
    } else if (absl::IsResourceExhausted(built.status())) {
      // A limit, which the next attempt would reach as well: the stream is read chunk by chunk.
      failed_.Increment();
      known.behind += stream.chunks;
      if (std::exchange(is_logged, true)) continue;
      SPDLOG_WARN("no digests of stream {} of capture {}: {}", stream.number, record.id.ToString(),
                  std::string(built.status().message()));
    } else {
      known.is_done = false;
      return built.status();
    }
    if (IsEnding()) {
      known.is_done = false;
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
