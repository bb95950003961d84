// SPDX-License-Identifier: Apache-2.0
// chronyd's answer, byte by byte, and what it is worth.
#include "agent/clock/chrony_tracking.h"

#include <gtest/gtest.h>

#include "agent/clock/chrony_test_support.h"

namespace neurontrace {
namespace {

TEST(ChronyTracking, EncodesRequestPerProtocol) {
  const std::string request = EncodeTrackingRequest(0x01020304);
  EXPECT_EQ(request.size(), 104u);
  EXPECT_EQ(request.substr(0, 12),
            std::string("\x06\x01\x00\x00\x00\x21\x00\x00\x01\x02\x03\x04", 12));
  EXPECT_EQ(request.find_first_not_of('\0', 12), std::string::npos);
}

TEST(ChronyTracking, ParsesReply) {
  const auto tracking = DecodeTrackingReply(ChronyReply({}).Encode(7), 7);
  ASSERT_TRUE(tracking.ok()) << tracking.status();
  EXPECT_EQ(tracking->stratum, 3);
  EXPECT_EQ(tracking->leap_status, 0);
  EXPECT_EQ(tracking->reference_time_ns, 1'700'000'000'250'000'000u);
  EXPECT_NEAR(tracking->correction_s, -12e-6, 1e-12);
  EXPECT_NEAR(tracking->root_delay_s, 200e-6, 1e-11);
  EXPECT_NEAR(tracking->root_dispersion_s, 35e-6, 1e-12);
}

TEST(ChronyTracking, RejectsMalformedReply) {
  const std::string good = ChronyReply({}).Encode(7);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeTrackingReply(good, 8).status()));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeTrackingReply(good.substr(0, bytes), 7).status()));
  }
  for (const size_t at : {0, 1, 4, 5, 6, 7}) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] + 1);
    EXPECT_FALSE(DecodeTrackingReply(changed, 7).ok()) << at;
  }
  std::string refused = good;
  refused[9] = 2;
  EXPECT_TRUE(absl::IsUnavailable(DecodeTrackingReply(refused, 7).status()));
  std::string no_time = good;
  no_time[64] = 0x7f;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeTrackingReply(no_time, 7).status()));
}

TEST(ChronyTracking, UtcBoundIncludesAllErrorTerms) {
  const ClockSnapshot now{
      .raw_begin_ns = 1'000, .raw_end_ns = 1'100, .realtime_ns = 1'700'000'010'250'000'000};
  const auto tracking = DecodeTrackingReply(ChronyReply({}).Encode(1), 1);
  const auto reading = UtcFromChrony(*tracking, now);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->source, UtcSource::kChrony);
  // 12 + 35 + 200 / 2 us, and 50 ppm of the 10 s since it heard of its source.
  EXPECT_NEAR(static_cast<double>(now.realtime_ns - reading->utc_earliest_ns), 647'050, 2);
  EXPECT_NEAR(static_cast<double>(reading->utc_latest_ns - now.realtime_ns), 647'050, 2);
}

TEST(ChronyTracking, ReturnsNoBoundWhenUnsynchronized) {
  const ClockSnapshot now{.realtime_ns = 1'700'000'010'250'000'000};
  const auto utc = [&](const ChronyTracking& tracking) { return UtcFromChrony(tracking, now); };
  const ChronyTracking good = *DecodeTrackingReply(ChronyReply({}).Encode(1), 1);
  EXPECT_TRUE(utc(good));
  for (const uint16_t leap : {1, 2, 3, 9}) {
    ChronyTracking tracking = good;
    tracking.leap_status = leap;
    EXPECT_FALSE(utc(tracking));
  }
  for (const uint16_t stratum : {0, 16, 999}) {
    ChronyTracking tracking = good;
    tracking.stratum = stratum;
    EXPECT_FALSE(utc(tracking));
  }
  ChronyTracking tracking = good;
  tracking.root_delay_s = -1;
  EXPECT_FALSE(utc(tracking));
  tracking = good;
  tracking.root_dispersion_s = 1e30;
  EXPECT_FALSE(utc(tracking));
  tracking = good;
  tracking.reference_time_ns = 0;
  EXPECT_FALSE(utc(tracking));
}

}  // namespace
}  // namespace neurontrace
