// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/vm_clock.h"

#include <cstring>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The beginning of struct vmclock_abi; little endian. Copied because linux/vmclock-abi.h is too new
// to be present on all build machines.
struct VmClockHead {
  uint32_t magic;
  uint32_t size;
  uint16_t version;
  uint8_t counter_id;
  uint8_t time_type;
  uint32_t sequence;  // odd while it is being written
  uint64_t disruption_marker;
};
static_assert(sizeof(VmClockHead) == 24);
constexpr uint32_t kVmClockMagic = 0x4b4c4356;  // "VCLK"
constexpr uint16_t kAbiVersion = 1;
// Attempts at a consistent copy; the collector looks again soon after.
constexpr int kVmClockTriesMax = 8;

// Copies the beginning of the page. Returns false if the file is shorter or cannot be read.
bool ReadHead(FileSystem::File& file, VmClockHead& head) {
  const auto bytes = file.Read(0, sizeof(head));
  if (!bytes.ok() || bytes->size() != sizeof(head)) return false;
  memcpy(&head, bytes->data(), sizeof(head));
  return true;
}

}  // namespace

absl::StatusOr<VmClock> VmClock::Open(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileSystem::File> file, files.OpenForReading(path));
  VmClockHead head;
  if (!ReadHead(*file, head) || head.magic != kVmClockMagic || head.size < sizeof(head) ||
      head.version != kAbiVersion) {
    return InvalidArgument("{} is not a vmclock page of version {}", path, kAbiVersion);
  }
  return VmClock(std::move(file));
}

std::optional<uint64_t> VmClock::DisruptionMarker() {
  VmClockHead first;
  VmClockHead second;
  for (int tries = 0; tries < kVmClockTriesMax; ++tries) {
    if (!ReadHead(*file_, first) || !ReadHead(*file_, second)) return std::nullopt;
    // A sequence lock, read as a file: two equal reads with an even number are one consistent copy.
    if (first.sequence % 2 == 0 && memcmp(&first, &second, sizeof(first)) == 0) {
      return first.disruption_marker;
    }
  }
  return std::nullopt;
}

}  // namespace neurontrace
