// SPDX-License-Identifier: Apache-2.0
// Any bytes as chronyd's answer: it is refused, or its reading of UTC is an interval around
// CLOCK_REALTIME that is not wider than a promise may be.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "agent/clock/chrony_tracking.h"
#include "agent/clock/utc_bound.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "violated requirement: %s\n", what);
  abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string_view packet(reinterpret_cast<const char*>(data), size);
  const auto tracking = DecodeTrackingReply(packet, 0x61626364);
  if (!tracking.ok()) return 0;
  const ClockSnapshot now{
      .raw_begin_ns = 1'000, .raw_end_ns = 1'100, .realtime_ns = 1'700'000'000'000'000'000};
  const auto reading = UtcFromChrony(*tracking, now);
  if (!reading) return 0;
  Check(reading->utc_earliest_ns <= now.realtime_ns, "earliest is not after REALTIME");
  Check(reading->utc_latest_ns >= now.realtime_ns, "latest is not before REALTIME");
  Check(static_cast<double>(reading->utc_latest_ns - reading->utc_earliest_ns) <=
            2 * kUtcBoundMaxNs + 200,
        "the bound is bounded");
  return 0;
}
