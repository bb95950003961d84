// SPDX-License-Identifier: Apache-2.0
#include "cli/clocks_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::InstanceClock Aligned() {
  v1::InstanceClock clock;
  clock.set_instance_id("i-0a");
  clock.set_aligned(true);
  clock.set_offset_ns(-1'204'000'000);
  clock.set_drift_ppb(12'345);
  clock.set_bound_ns(31'240);
  clock.set_likely_bound_ns(2'100);
  clock.add_sources("udp");
  clock.add_sources("phc");
  clock.set_exchanges(1'203);
  return clock;
}

TEST(ClocksViewTest, FormatsOffsetsWithSuitableUnits) {
  EXPECT_EQ(FormatOffset(0), "0.0 us");
  EXPECT_EQ(FormatOffset(31'540), "+31.5 us");
  EXPECT_EQ(FormatOffset(-2'500'000), "-2.500 ms");
  EXPECT_EQ(FormatOffset(1'204'000'000), "+1.204 s");
  EXPECT_EQ(FormatOffset(INT64_MIN), "-9223372036.855 s");
}

TEST(ClocksViewTest, ShowsEachClockAndItsEvents) {
  google::protobuf::RepeatedPtrField<v1::InstanceClock> clocks;
  *clocks.Add() = Aligned();
  auto* finding = clocks[0].add_findings();
  finding->set_words("somebody set the clock");
  finding->set_begin_ns(1'700'000'000'000'000'000);
  finding->set_amount_ns(5'000'000);
  clocks.Add()->set_instance_id("i-0b");
  const std::string text = FormatClocks(clocks);
  EXPECT_THAT(text,
              HasSubstr("i-0a      -1.204 s  +12.345 ppm  31.2 us (likely 2.1 us)  udp, phc"));
  EXPECT_THAT(text, HasSubstr("i-0b      -         -            not aligned"));
  EXPECT_THAT(text, HasSubstr("i-0a  2023-11-14 22:13:20Z  somebody set the clock (+5.000 ms)\n"));
  EXPECT_THAT(text, HasSubstr("within 31.2 us of the reference"));
}

TEST(ClocksViewTest, ShowsVersionOfCaptureClocks) {
  v1::ListClocksReply reply;
  EXPECT_THAT(FormatClockVersion(reply), HasSubstr("is not stored"));
  reply.set_version(1);
  EXPECT_EQ(FormatClockVersion(reply), "Version 1 of this capture's clocks, not final yet.\n");
  reply.set_version(2);
  reply.set_final(true);
  EXPECT_EQ(FormatClockVersion(reply), "Version 2 of this capture's clocks, final.\n");
}

TEST(ClocksViewTest, ShowsDeviceClocksAndOrderChecks) {
  v1::ListClocksReply reply;
  EXPECT_EQ(FormatDevicesAndOrder(reply), "");
  reply.mutable_devices()->set_known(24);
  reply.mutable_devices()->set_unknown(1);
  reply.mutable_devices()->set_bound_ns(9'500);
  reply.mutable_devices()->set_likely_bound_ns(1'200);
  v1::OrderCheck& check = *reply.add_order();
  check.set_job("slurm 7");
  check.set_words("0 of 240 cc_running of several instances are shown left ...");
  const std::string text = FormatDevicesAndOrder(reply);
  EXPECT_THAT(text, HasSubstr("Events of 24 device cores are placed by the cores' own counters, "
                              "within 9.5 us (likely 1.2 us) of their hosts' clocks.\n"));
  EXPECT_THAT(text, HasSubstr("Events of 1 device core keep the runtime's own timestamps.\n"));
  EXPECT_THAT(text, HasSubstr("  job slurm 7: 0 of 240 cc_running"));
}

TEST(ClocksViewTest, KeepsLongListsOfFindingsShort) {
  google::protobuf::RepeatedPtrField<v1::InstanceClock> clocks;
  *clocks.Add() = Aligned();
  for (int i = 0; i < 50; ++i) clocks[0].add_findings()->set_words(fmt::format("finding {}.", i));
  const std::string text = FormatClocks(clocks);
  EXPECT_THAT(text, HasSubstr("finding 19."));
  EXPECT_THAT(text, Not(HasSubstr("finding 20.")));
  EXPECT_THAT(text, HasSubstr("(30 more: --output json has all)"));
}

}  // namespace
}  // namespace neurontrace::cli
