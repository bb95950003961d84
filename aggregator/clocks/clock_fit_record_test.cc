// SPDX-License-Identifier: Apache-2.0
// The record of a fit comes back as it was, and two of them say whether evidence came or went.
#include "aggregator/clocks/clock_fit_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/store/clock_evidence_store.h"

namespace neurontrace {
namespace {

ClockFitRecord Record() {
  ClockFitRecord record = FitRecordOfThisBuild({});
  record.is_final = true;
  record.window = {1'000, 2'000};
  record.chunks = 77;
  record.evidence = {{{"i-a", "boot"}, {3, 300, 1'500}, 99}, {{"i-b", "boot"}, {0, 0, 0}, 0}};
  return record;
}

TEST(ClockFitRecord, RoundTripsUnchanged) {
  const ClockFitRecord record = Record();
  const auto again = DecodeClockFitRecord(EncodeClockFitRecord(record));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, record);
  EXPECT_TRUE(AreFittedAlike(*again, FitRecordOfThisBuild({})));
  EXPECT_THAT(again->parameters, testing::Contains("host.wander_ns_per_s2=50"));
}

TEST(ClockFitRecord, RefusesOtherBytes) {
  const std::string bytes = EncodeClockFitRecord(Record());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeClockFitRecord(bytes.substr(0, size)).status()));
  }
  EXPECT_FALSE(DecodeClockFitRecord(bytes + 'x').ok());
  ClockFitRecord record = Record();
  std::swap(record.evidence[0], record.evidence[1]);
  EXPECT_FALSE(DecodeClockFitRecord(EncodeClockFitRecord(record)).ok());
}

TEST(ClockFitRecord, KnowsAnotherBuild) {
  ClockFitRecord record = Record();
  ++record.host_algorithm;
  EXPECT_FALSE(AreFittedAlike(record, FitRecordOfThisBuild({})));
  record = Record();
  ++record.device_algorithm;
  EXPECT_FALSE(AreFittedAlike(record, FitRecordOfThisBuild({})));
  record = Record();
  record.parameters[0] += "1";
  EXPECT_FALSE(AreFittedAlike(record, FitRecordOfThisBuild({})));
}

// A change of any of them alone must refit the models that are stored.
TEST(ClockFitRecord, HasTheParametersOfEveryStepOfAFit) {
  EXPECT_THAT(
      FitRecordOfThisBuild({}).parameters,
      testing::IsSupersetOf({"host.rate_ns_per_s=-100000 to 100000", "host.route.bin_probes=32",
                             "host.route.agree_ns=4000", "host.step.likely_tolerance_ns=1000",
                             "host.step.horizon_sides=48", "host.step.horizon_sides_max=512",
                             "device.rate_ns_per_s=-600000 to 600000", "device.sync.order=0",
                             "device.sync.apart_least_ns=3000", "device.sync.gate_ns=50000",
                             "device.sync.wander_ns_per_s2=50",
                             "device.sync.rate_ns_per_s=-600000 to 600000", "order.barriers=1"}));
}

TEST(ClockFitRecord, ReportsAddedAndRemoved) {
  const ClockFitRecord then = Record();
  ClockFitRecord now = Record();
  EXPECT_FALSE(HasMoreOfCapture(now, then) || HasMoreEvidence(now, then) ||
               HasLessEvidence(now, then));
  now.evidence[1].stored.batches = 1;
  EXPECT_TRUE(HasMoreEvidence(now, then));
  EXPECT_FALSE(HasLessEvidence(now, then) || HasMoreOfCapture(now, then));
  now.evidence[0].stored.batches = 2;
  EXPECT_TRUE(HasLessEvidence(now, then));
  now = Record();
  now.evidence.push_back({{"i-c", "boot"}, {}, 0});
  EXPECT_TRUE(HasMoreOfCapture(now, then));
  now = Record();
  ++now.chunks;
  EXPECT_TRUE(HasMoreOfCapture(now, then));
  EXPECT_FALSE(HasMoreOfCapture(then, now));
  now = Record();
  ++now.window.end_ns;
  EXPECT_TRUE(HasMoreOfCapture(now, then));
}

// What the aggregator measured of itself comes and goes with evidence, not with the capture.
TEST(ClockFitRecord, TheReferencesKeeperIsNoMachineOfTheCapture) {
  const ClockFitRecord then = Record();
  ClockFitRecord now = Record();
  now.evidence.insert(now.evidence.begin(), {ReferenceHost("boot"), {2, 20, 1'600}, 7});
  EXPECT_FALSE(HasMoreOfCapture(now, then));
  EXPECT_TRUE(HasMoreEvidence(now, then));
  EXPECT_TRUE(HasLessEvidence(then, now));
}

}  // namespace
}  // namespace neurontrace
