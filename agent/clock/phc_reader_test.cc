// SPDX-License-Identifier: Apache-2.0
// Readings of a hardware clock on raw: the truth lies within, and nonsense gives none.
#include "agent/clock/phc_reader.h"

#include <gtest/gtest.h>

#include "lib/base/fake_file_system.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

constexpr int64_t kUtcAheadNs = 123'456;  // of REALTIME
constexpr uint64_t kBoundNs = 5'000;

ptp_clock_time Time(uint64_t ns) {
  return {.sec = static_cast<int64_t>(ns / 1'000'000'000),
          .nsec = static_cast<uint32_t>(ns % 1'000'000'000)};
}

class PhcReaderTest : public testing::Test {
 protected:
  // Samples that took these times, between two snapshots.
  void Sample(std::initializer_list<uint64_t> took_ns) {
    before_ = ReadHostClocks(clocks_);
    clocks_.AdvanceNs(2'000);
    for (const uint64_t took : took_ns) {
      auto& sample = samples_.ts[samples_.n_samples++];
      sample[0] = Time(clocks_.realtime_ns());
      clocks_.AdvanceNs(took / 3);
      sample[1] = Time(clocks_.realtime_ns() + kUtcAheadNs);
      read_raw_ns_ = clocks_.RawNs();
      clocks_.AdvanceNs(took - took / 3);
      sample[2] = Time(clocks_.realtime_ns());
    }
    clocks_.AdvanceNs(2'000);
    after_ = ReadHostClocks(clocks_);
  }

  FakeHostClocks clocks_;
  ptp_sys_offset_extended samples_{};
  ClockSnapshot before_;
  ClockSnapshot after_;
  uint64_t read_raw_ns_ = 0;
};

TEST_F(PhcReaderTest, HoldsTheTruthWithinTheTightestSample) {
  clocks_.SteerPpm(100);
  const uint64_t raw_zero = clocks_.RawNs();
  const uint64_t utc_zero = clocks_.realtime_ns() + kUtcAheadNs;
  Sample({9'000, 1'200, 30'000});
  const auto reading = UtcFromPhc(samples_, before_, after_, kBoundNs);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->source, UtcSource::kPhc);
  const uint64_t truth = utc_zero + (reading->raw_ns - raw_zero) * 10'001 / 10'000;
  EXPECT_LE(reading->utc_earliest_ns + kBoundNs, truth + 1);
  EXPECT_GE(reading->utc_latest_ns - kBoundNs + 1, truth);
  EXPECT_LE(reading->utc_latest_ns - reading->utc_earliest_ns, 2 * kBoundNs + 1'200 + 250);
}

TEST_F(PhcReaderTest, ReturnsNothingWhenRealtimeWasSetDuringSampling) {
  Sample({1'000});
  ClockSnapshot stepped = after_;
  stepped.realtime_ns += 1'000'000;
  EXPECT_FALSE(UtcFromPhc(samples_, before_, stepped, kBoundNs));
}

TEST_F(PhcReaderTest, SkipsImplausibleSamples) {
  Sample({1'000, 1'000, 1'000, 1'000, 1'000});
  samples_.ts[0][0].sec = -1;
  samples_.ts[1][1].nsec = 2'000'000'000;
  samples_.ts[2][2] = samples_.ts[2][0];
  samples_.ts[2][2].sec -= 1;
  samples_.ts[3][2].sec += 10;
  samples_.ts[4][1].sec = int64_t{1} << 40;
  EXPECT_FALSE(UtcFromPhc(samples_, before_, after_, kBoundNs));
  samples_.n_samples = 0xffffffff;  // no more than the array has
  EXPECT_FALSE(UtcFromPhc(samples_, before_, after_, kBoundNs));
}

TEST(PhcErrorBound, IsANumberOfNanoseconds) {
  EXPECT_EQ(ParsePhcErrorBound("5031\n"), 5'031u);
  EXPECT_EQ(ParsePhcErrorBound("0"), 0u);
  for (const char* const text : {"", "\n", "-1\n", "5031 us", "0x10", "4294967295\n", "9e3"}) {
    EXPECT_EQ(ParsePhcErrorBound(text), std::nullopt) << text;
  }
}

TEST(PhcReader, UsesOnlyAClockWithABound) {
  FakeFileSystem files;
  const PhcPaths paths{.shown = "/sys/class/ptp", .devices = "/nowhere"};
  EXPECT_TRUE(absl::IsNotFound(PhcReader::Open(files, paths).status()));
  files.SetContents("/sys/class/ptp/ptp0/clock_name", "KVM virtual PTP\n");
  const absl::Status without = PhcReader::Open(files, paths).status();
  EXPECT_NE(without.message().find("no clock with an error bound"), std::string::npos) << without;
  files.SetContents("/sys/class/ptp/ptp1/device/phc_error_bound", "5031\n");
  const absl::Status with = PhcReader::Open(files, paths).status();
  EXPECT_NE(with.message().find("/nowhere/ptp1 cannot be opened"), std::string::npos) << with;
}

}  // namespace
}  // namespace neurontrace
