// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host/host_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/host_samples.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Files of /proc report no size, so they are read until nothing more comes. What is beyond the
// limit is not needed: /proc/stat begins with the processors.
absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  size_t size = 0;
  while (file.valid() && size < limits::kHostProcFileBytesMax) {
    text.resize(std::min(limits::kHostProcFileBytesMax, size + (64u << 10)));
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    size += static_cast<size_t>(got);
    if (got > 0) continue;
    text.resize(size);
    return text;
  }
  if (file.valid() && size >= limits::kHostProcFileBytesMax) return text;
  return Unavailable("cannot read {}: {}", path, std::generic_category().message(errno));
}

// In a shorter interval the kernel's clock ticks (10 ms) give no meaningful share.
constexpr uint64_t kIntervalMinNs = 100'000'000;
// A chunk for each sample would consist mostly of headers. Samples older than this are at the
// aggregator, and retention removes them in pieces no longer than this.
constexpr uint64_t kChunkAgeNs = 2'000'000'000;

// A shape as StreamWriter expects it; there are two, so no cache is needed.
CachedShape MakeShape(uint32_t number, std::string_view type, std::vector<ShapeKey> keys) {
  CachedShape cached;
  cached.number = number;
  cached.generation = 1;
  cached.shape.event_type = type;
  cached.shape.phase = Phase::kCounter;
  cached.shape.present = FieldBit(Field::kTimestamp);
  cached.shape.keys = std::move(keys);
  return cached;
}

// Chunks of samples are closed at an age of their own; see kChunkAgeNs.
StreamWriter::Options WriterOptions() {
  StreamWriter::Options options;
  options.chunk_age_ns = kChunkAgeNs;
  return options;
}

}  // namespace

absl::StatusOr<HostReading> ReadHost(const std::string& proc_root, const Clock& clock) {
  HostReading reading;
  ASSIGN_OR_RETURN(const std::string stat, ReadProcFile(proc_root + "/stat"));
  // Right after the processors' counters, whose interval needs the exact time.
  reading.realtime_ns = clock.RealtimeNs();
  reading.monotonic_ns = clock.MonotonicNs();
  ASSIGN_OR_RETURN(reading.cpus, ParseCpuTimes(stat));
  ASSIGN_OR_RETURN(const std::string meminfo, ReadProcFile(proc_root + "/meminfo"));
  ASSIGN_OR_RETURN(reading.memory, ParseMemory(meminfo));
  return reading;
}

HostStream::HostStream(const CaptureId& capture_id, StreamIdentity identity, const Clock& clock,
                       ChunkSink& sink, AgentSourceMetrics& metrics, HostReading first)
    : capture_id_(capture_id),
      sink_(sink),
      metrics_(metrics),
      cpu_shape_(MakeShape(0, kHostCpuEventType,
                           {{kHostCpuIdKey, ValueType::kString, KeyScope::kData},
                            {kHostUtilPercentKey, ValueType::kDouble, KeyScope::kData},
                            {kHostDurationNsKey, ValueType::kUint, KeyScope::kData}})),
      memory_shape_(MakeShape(1, kHostMemoryEventType,
                              {{kHostUsedBytesKey, ValueType::kUint, KeyScope::kData},
                               {kHostUsedPercentKey, ValueType::kDouble, KeyScope::kData},
                               {kHostTotalBytesKey, ValueType::kUint, KeyScope::kData}})),
      writer_(capture_id, std::move(identity), clock, sink, metrics, WriterOptions()),
      before_(std::move(first)),
      next_position_(before_.monotonic_ns) {}

void HostStream::Resume(const StreamCursor& cursor, bool is_confirmed) {
  writer_.Resume(cursor);
  first_is_closed_ = cursor.source_position > 0;
  // A record within which a chunk was closed cannot be distinguished from a new one at its
  // position, so the stream continues behind it.
  const bool is_within = cursor.source_skip > 0 && cursor.source_position < UINT64_MAX;
  const uint64_t stood_at = cursor.source_position + (is_within ? 1 : 0);
  const uint64_t now = before_.monotonic_ns;
  next_position_ = std::max(now, stood_at);
  if (cursor.ended || cursor.source_position == 0 || stood_at >= now) return;
  const uint64_t away_ns = now - stood_at;
  const uint64_t since_ns = before_.realtime_ns - std::min(before_.realtime_ns, away_ns);
  writer_.AddLoss(
      next_position_,
      {.place = LossPlace::kAgentQueue,
       .reason = LossReason::kUnknown,
       .first_timestamp_ns = since_ns,
       .last_timestamp_ns = is_confirmed ? before_.realtime_ns : since_ns,
       .detail = is_confirmed ? "no host samples: the agent was restarted"
                              : "no host samples until the next one: the agent was restarted"});
}

void HostStream::Take(HostReading reading) {
  if (reading.monotonic_ns < before_.monotonic_ns + kIntervalMinNs) return;
  // before_ stays, so the next sample covers this interval too.
  if (!sink_.HasRoom(capture_id_)) {
    AgentSourceMetrics::Add(metrics_.reads_waiting);
    return;
  }
  // Positions ascend even if an earlier run of the agent got further.
  const uint64_t position = std::max(next_position_, reading.monotonic_ns);
  const uint64_t interval_ns = reading.monotonic_ns - before_.monotonic_ns;
  // Times in one chunk are close together, which retention relies on; such an interval gets its
  // own.
  const bool is_long = interval_ns > kChunkAgeNs;
  if (is_long) writer_.Flush(next_position_);
  for (size_t i = 0; i < reading.cpus.size(); ++i) {
    const CpuTimes& after = reading.cpus[i];
    // They are in the same order unless a processor appeared or disappeared.
    auto known = before_.cpus.begin() + static_cast<ptrdiff_t>(std::min(i, before_.cpus.size()));
    if (known == before_.cpus.end() || known->cpu != after.cpu) {
      known = std::find_if(before_.cpus.begin(), before_.cpus.end(),
                           [&](const CpuTimes& times) { return times.cpu == after.cpu; });
    }
    // A processor that has just appeared has no interval yet.
    if (known != before_.cpus.end()) AppendCpu(position, *known, after, interval_ns);
  }
  AppendMemory(position, reading);
  AgentSourceMetrics::Add(metrics_.host_samples);
  next_position_ = position < UINT64_MAX ? position + 1 : position;
  if (is_long) writer_.Flush(next_position_);
  before_ = std::move(reading);
}

void HostStream::Continue(HostReading first) {
  paused_ = false;
  next_position_ = std::max(next_position_, first.monotonic_ns);
  before_ = std::move(first);
}

void HostStream::AppendCpu(uint64_t position, const CpuTimes& before, const CpuTimes& after,
                           uint64_t interval_ns) {
  const CpuShare share = ShareBetween(before, after);
  if (!share.known) return;
  const std::string id =
      after.cpu == CpuTimes::kAverage ? std::string(kHostCpuAverageId) : std::to_string(after.cpu);
  const std::array<AttributeValue, 3> values = {
      {{.text = id}, {.bits = std::bit_cast<uint64_t>(share.percent)}, {.bits = interval_ns}}};
  writer_.Append(position, cpu_shape_, {.timestamp_ns = before_.realtime_ns}, values);
}

void HostStream::AppendMemory(uint64_t position, const HostReading& reading) {
  const std::array<AttributeValue, 3> values = {
      {{.bits = reading.memory.used_bytes},
       {.bits = std::bit_cast<uint64_t>(PercentUsed(reading.memory))},
       {.bits = reading.memory.total_bytes}}};
  writer_.Append(position, memory_shape_, {.timestamp_ns = reading.realtime_ns}, values);
}

void HostStream::Tick() {
  // Only a chunk with a sample records since when a restarted agent has none, so the first is not
  // delayed.
  const bool is_first = !first_is_closed_ && writer_.counts().read > 0;
  if (is_first) writer_.Flush(next_position_);
  first_is_closed_ = first_is_closed_ || is_first;
  writer_.Tick(next_position_);
}

void HostStream::Flush() { writer_.Flush(next_position_); }

void HostStream::End() { writer_.End(next_position_); }

}  // namespace neurontrace
