// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Seals without which the other side could resize the file under the mapping.
constexpr int kNeededSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

absl::StatusOr<SealedMemory> MapSealedMemory(int memfd, uint64_t bytes_min, uint64_t bytes_max,
                                             std::string_view whose) {
  // Only memory files have seals (fcntl(2)).
  const int seals = fcntl(memfd, F_GET_SEALS);
  if (seals < 0) return InvalidArgument("the {}'s buffer is not a memfd", whose);
  if ((seals & kNeededSeals) != kNeededSeals) {
    return InvalidArgument("the {}'s buffer is not sealed against resizing (seals {:#x})", whose,
                           seals);
  }
  struct stat about = {};
  if (fstat(memfd, &about) != 0) return Internal("fstat: {}", std::strerror(errno));
  // From here on the size cannot change, so it is checked once.
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (about.st_size < 0 || bytes < bytes_min || bytes > bytes_max) {
    return InvalidArgument("the {}'s buffer has an invalid size of {} bytes", whose, about.st_size);
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (memory == MAP_FAILED) {
    return InvalidArgument("the {}'s buffer cannot be mapped: {}", whose, std::strerror(errno));
  }
  return SealedMemory{static_cast<uint8_t*>(memory), bytes, about.st_dev, about.st_ino};
}

void CopyOnce(const void* from, void* to, size_t bytes) {
  std::memcpy(to, from, bytes);
  // No load moves from before the fence to behind it.
  std::atomic_signal_fence(std::memory_order_acq_rel);
}

void CopyFromRing(const uint8_t* ring, uint64_t ring_bytes, uint64_t position, char* to,
                  size_t bytes) {
  assert(std::has_single_bit(ring_bytes) && bytes <= ring_bytes);
  const size_t offset = position & (ring_bytes - 1);
  const size_t first = std::min<size_t>(bytes, ring_bytes - offset);
  CopyOnce(ring + offset, to, first);
  CopyOnce(ring, to + first, bytes - first);
}

}  // namespace neurontrace
