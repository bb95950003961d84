// SPDX-License-Identifier: Apache-2.0
// Anything at all as ClockBound's memory (its first byte even) or the hypervisor's vmclock page.
// What is taken promises a time that is one, whenever it is asked.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/clock/clock_bound.h"
#include "agent/clock/vm_clock.h"
#include "lib/base/fake_file_system.h"

namespace neurontrace {
namespace {

constexpr char kPage[] = "/page";

void FuzzClockBound(FileSystem& files) {
  const auto promise = ClockBoundMemory::Read(files, kPage);
  if (!promise.ok()) return;
  for (const uint64_t monotonic_ns : {uint64_t{0}, promise->as_of_ns, promise->void_after_ns}) {
    const ClockSnapshot now{.raw_begin_ns = 1'000,
                            .raw_end_ns = 1'100,
                            .realtime_ns = 1'700'000'000'000'000'000,
                            .monotonic_ns = monotonic_ns};
    const auto utc = ClockBoundMemory::Utc(*promise, now, promise->disruption_marker);
    if (utc && !(utc->utc_earliest_ns <= now.realtime_ns && now.realtime_ns <= utc->utc_latest_ns))
      std::abort();
  }
}

void FuzzVmClock(FileSystem& files) {
  auto clock = VmClock::Open(files, kPage);
  if (clock.ok()) static_cast<void>(clock->DisruptionMarker());
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  if (size == 0) return 0;
  FakeFileSystem files;
  files.SetContents(kPage, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  data[0] % 2 == 0 ? FuzzClockBound(files) : FuzzVmClock(files);
  return 0;
}
