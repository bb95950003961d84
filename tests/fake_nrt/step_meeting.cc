// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/step_meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace neurontrace {
namespace {

constexpr int64_t kLookNs = 1'000'000;

}  // namespace

StepMeeting::StepMeeting(const std::string& path, uint32_t world_size)
    : world_size_(world_size), bytes_(2 * size_t{world_size} * sizeof(Place)) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share the places");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  // The same size from every process: whoever comes later keeps what is there. New bytes are 0.
  if (ftruncate(fd, static_cast<off_t>(bytes_)) == 0) {
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) places_ = static_cast<Place*>(mapped);
  }
  close(fd);
}

StepMeeting::~StepMeeting() {
  if (places_ != nullptr) munmap(places_, bytes_);
}

void StepMeeting::Arrive(uint64_t step, uint32_t rank, int64_t late_ns) {
  Place& place = PlaceOf(step, rank);
  place.late_ns.store(late_ns, std::memory_order_relaxed);
  place.arrived.store(step + 1, std::memory_order_release);
}

std::optional<int64_t> StepMeeting::WaitForAll(uint64_t step, const StopSignal& stop) const {
  int64_t latest_ns = 0;
  for (uint32_t rank = 0; rank < world_size_; ++rank) {
    const Place& place = PlaceOf(step, rank);
    while (place.arrived.load(std::memory_order_acquire) != step + 1) {
      if (stop.WaitUntil(TrueNow() + kLookNs)) return std::nullopt;
    }
    latest_ns = std::max(latest_ns, place.late_ns.load(std::memory_order_relaxed));
  }
  return latest_ns;
}

}  // namespace neurontrace
