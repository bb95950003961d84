// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kSourceFile[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

class DoctorHostTest : public testing::Test {
 protected:
  DoctorHostTest() { host_.PutFile(kSourceFile, "tsc\n"); }
  FakeHostView host_;
};

TEST_F(DoctorHostTest, AGoodClockIsGood) {
  host_.PutFile("/dev/vmclock0", "");
  host_.PutFile("/dev/ptp0", "");
  const auto findings = CheckClocks(host_);
  ASSERT_EQ(findings.size(), 3u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.severity, Severity::kGood);
  EXPECT_EQ(findings[0].what, "tsc");
  EXPECT_EQ(findings[2].what, "vmclock, /dev/ptp0");
}

TEST_F(DoctorHostTest, ASlowClockSourceIsAWarning) {
  host_.PutFile(kSourceFile, "hpet\n");
  EXPECT_EQ(CheckClocks(host_)[0].severity, Severity::kWarning);
  EXPECT_THAT(CheckClocks(host_)[0].what, HasSubstr("hpet is slow"));
  host_.entries.erase(kSourceFile);
  EXPECT_EQ(CheckClocks(host_)[0].severity, Severity::kNote);
}

TEST_F(DoctorHostTest, UnsynchronizedClockIsWarning) {
  host_.clock = ClockDiscipline{false, 16'000'000'000};
  EXPECT_EQ(CheckClocks(host_)[1].severity, Severity::kWarning);
  EXPECT_THAT(CheckClocks(host_)[1].what, HasSubstr("is not synchronised"));
  host_.clock = ClockDiscipline{true, 2'000'000'000};
  EXPECT_THAT(CheckClocks(host_)[1].what, HasSubstr("only within"));
  host_.clock = std::nullopt;
  EXPECT_EQ(CheckClocks(host_)[1].severity, Severity::kNote);
}

TEST_F(DoctorHostTest, MissingTimeSourceIsInfo) {
  EXPECT_EQ(CheckClocks(host_)[2].severity, Severity::kNote);
}

TEST_F(DoctorHostTest, LimitsThatAreTooLow) {
  for (const Finding& finding : CheckLimits(host_)) EXPECT_EQ(finding.severity, Severity::kGood);
  host_.open_files = 1024;
  host_.locked_bytes = 4096;
  for (const Finding& finding : CheckLimits(host_)) {
    EXPECT_EQ(finding.severity, Severity::kWarning) << finding.what;
    EXPECT_FALSE(finding.fix.empty());
  }
}

TEST_F(DoctorHostTest, DevicesHaveNumbers) {
  EXPECT_FALSE(HasNeuronDevices(host_));
  host_.PutFile("/dev/neuron_socket", "");
  EXPECT_FALSE(HasNeuronDevices(host_));
  host_.PutFile("/dev/neuron0", "");
  EXPECT_TRUE(HasNeuronDevices(host_));
}

}  // namespace
}  // namespace neurontrace::cli
