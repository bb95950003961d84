// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/clock_bound.h"

#include <cstring>

#include "agent/clock/utc_bound.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The segment as ClockBound's protocol document describes it; numbers in the byte order of the
// machine.
struct Memory {
  uint32_t magic[2];
  uint32_t bytes;
  uint16_t version;
  uint16_t generation;  // odd while it is being written, 0 before it first was
  int64_t as_of_s;
  int64_t as_of_ns;
  int64_t void_after_s;
  int64_t void_after_ns;
  int64_t bound_ns;
  uint64_t disruption_marker;
  uint32_t max_drift_ppb;
  int32_t status;
  uint8_t reads_vmclock;
  uint8_t padding[7];
};
static_assert(sizeof(Memory) == 80);
constexpr uint32_t kClockBoundMagic[2] = {0x414d5a4e, 0x43420200};
constexpr uint16_t kShmVersion = 2;
constexpr int32_t kSynchronized = 1;
// Writes take microseconds, so a few attempts suffice; the next poll comes in seconds anyway.
constexpr int kClockBoundTriesMax = 8;
// About the year 2242; keeps the product in Nanoseconds below 2^64.
constexpr int64_t kSecondsMax = int64_t{1} << 33;

// Nanoseconds of a timespec; nullopt for what is none.
std::optional<uint64_t> Nanoseconds(int64_t seconds, int64_t nanoseconds) {
  if (seconds < 0 || seconds > kSecondsMax) return std::nullopt;
  if (nanoseconds < 0 || nanoseconds >= 1'000'000'000) return std::nullopt;
  return static_cast<uint64_t>(seconds) * 1'000'000'000u + static_cast<uint64_t>(nanoseconds);
}

// Reads a consistent copy. The segment is a sequence lock, so two reads must be equal, with an even
// generation.
absl::StatusOr<Memory> ReadMemory(FileSystem& files, const std::string& path) {
  // Opened again each time: a daemon that starts again makes a new file.
  ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem::File> file, files.OpenForReading(path));
  for (int tries = 0; tries < kClockBoundTriesMax; ++tries) {
    ASSIGN_OR_RETURN(const std::string first, file->Read(0, sizeof(Memory)));
    ASSIGN_OR_RETURN(const std::string second, file->Read(0, sizeof(Memory)));
    Memory memory;
    if (first.size() != sizeof(memory)) {
      return InvalidArgument("{}: {} bytes are not a valid ClockBound segment", path, first.size());
    }
    memcpy(&memory, first.data(), sizeof(memory));
    if (memory.generation % 2 == 0 && memory.generation != 0 && first == second) return memory;
  }
  return Unavailable("{} is being written", path);
}

}  // namespace

absl::StatusOr<ClockBoundPromise> ClockBoundMemory::Read(FileSystem& files,
                                                         const std::string& path) {
  ASSIGN_OR_RETURN(const Memory memory, ReadMemory(files, path));
  if (memcmp(memory.magic, kClockBoundMagic, sizeof(kClockBoundMagic)) != 0 ||
      memory.version != kShmVersion || memory.bytes < sizeof(memory)) {
    return InvalidArgument("{} is not a ClockBound segment of version {}", path, kShmVersion);
  }
  const auto as_of_ns = Nanoseconds(memory.as_of_s, memory.as_of_ns);
  const auto void_after_ns = Nanoseconds(memory.void_after_s, memory.void_after_ns);
  if (!as_of_ns || !void_after_ns || memory.bound_ns < 0) {
    return InvalidArgument("{} contains invalid times", path);
  }
  ClockBoundPromise promise{.as_of_ns = *as_of_ns,
                            .void_after_ns = *void_after_ns,
                            .bound_ns = static_cast<uint64_t>(memory.bound_ns),
                            .max_drift_ppb = memory.max_drift_ppb,
                            .synchronized = memory.status == kSynchronized};
  if (memory.reads_vmclock == 1) promise.disruption_marker = memory.disruption_marker;
  return promise;
}

std::optional<UtcReading> ClockBoundMemory::Utc(const ClockBoundPromise& promise,
                                                const ClockSnapshot& now,
                                                std::optional<uint64_t> disruption_marker) {
  if (!promise.synchronized || now.monotonic_ns > promise.void_after_ns) return std::nullopt;
  // A migration since the promise: the clock may have jumped by any amount.
  if (promise.disruption_marker && disruption_marker &&
      *promise.disruption_marker != *disruption_marker) {
    return std::nullopt;
  }
  // The coarse clock is behind MONOTONIC: this is never too short, but for a promise of a moment
  // after `now` was read.
  const uint64_t age_ns =
      now.monotonic_ns > promise.as_of_ns ? now.monotonic_ns - promise.as_of_ns : 0;
  const double drift_ns = static_cast<double>(age_ns) * 1e-9 * promise.max_drift_ppb;
  const double bound_ns = static_cast<double>(promise.bound_ns) + drift_ns;
  return UtcWithin(UtcSource::kClockBound, now, bound_ns);
}

}  // namespace neurontrace
