// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_threads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

constexpr uint32_t kThreadIdMax = 4'194'304;  // PID_MAX_LIMIT of the kernel

// MurmurHash64A of one word, as libstdc++ computes it (_Hash_bytes in libsupc++/hash_bytes.cc).
constexpr uint64_t kSeed = 0xc70f6907;
constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
constexpr uint64_t kBegin = kSeed ^ (sizeof(uint64_t) * kFactor);

// Is its own inverse, as the shift is more than half of the bits.
constexpr uint64_t MixShifted(uint64_t word) { return word ^ (word >> 47); }

// Returns the inverse of an odd number modulo 2^64, by Newton's iteration.
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;  // right in three bits, and each turn doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}
constexpr uint64_t kFactorInverse = InverseOf(kFactor);
static_assert(kFactor * kFactorInverse == 1);

constexpr uint64_t HashOf(uint64_t handle) {
  const uint64_t mixed = (kBegin ^ (MixShifted(handle * kFactor) * kFactor)) * kFactor;
  return MixShifted(MixShifted(mixed) * kFactor);
}

constexpr uint64_t HandleOf(uint64_t hash) {
  const uint64_t mixed = MixShifted(MixShifted(hash) * kFactorInverse) * kFactorInverse;
  return MixShifted((mixed ^ kBegin) * kFactorInverse) * kFactorInverse;
}
static_assert(HandleOf(HashOf(0x7febe4b296c0)) == 0x7febe4b296c0);

template <typename Number>
bool ReadNumber(const UniqueFd& memory, uint64_t address, Number& number) {
  return pread(memory.get(), &number, sizeof number, static_cast<off_t>(address)) ==
         static_cast<ssize_t>(sizeof number);
}

// Returns whether a thread's structure is at `handle`. On x86-64 it contains its own address
// (tcbhead_t::self). Elsewhere the id has to be one of the process, so that threads of a container
// with ids of its own are not found.
bool IsThread(const UniqueFd& memory, uint64_t handle, const std::string& process, uint32_t id) {
#if defined(__x86_64__)
  constexpr uint64_t kSelfOffset = 0x10;
  (void)process;
  (void)id;
  uint64_t self = 0;
  return ReadNumber(memory, handle + kSelfOffset, self) && self == handle;
#else
  (void)memory;
  (void)handle;
  return access(fmt::format("{}/task/{}", process, id).c_str(), F_OK) == 0;
#endif
}

}  // namespace

XSpaceThreads::XSpaceThreads(uint32_t pid, std::string proc_root)
    : pid_(pid), process_(fmt::format("{}/{}", std::move(proc_root), pid)) {}

int64_t XSpaceThreads::LineIdOf(uint64_t handle) { return static_cast<int64_t>(HashOf(handle)); }

std::optional<uint32_t> XSpaceThreads::KernelId(int64_t line_id) const {
  // Older XLA gives the kernel's id itself.
  if (pid_ == 0 || kIdOffset == 0 || (line_id >= 0 && line_id <= kThreadIdMax)) return std::nullopt;
  const uint64_t handle = HandleOf(static_cast<uint64_t>(line_id));
  // An address of a program: aligned, and in the lower half.
  if (handle % alignof(void*) != 0 || handle >> 56 != 0) return std::nullopt;
  const UniqueFd memory(open((process_ + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  uint32_t id = 0;
  if (!memory.valid() || !ReadNumber(memory, handle + kIdOffset, id) || id == 0 ||
      id > kThreadIdMax || !IsThread(memory, handle, process_, id)) {
    return std::nullopt;
  }
  return id;
}

}  // namespace neurontrace
