// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/clock_judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WorkerCertificate Worker(const std::string& instance_id) {
  WorkerCertificate worker;
  worker.worker = {.instance_id = instance_id, .boot_id = "boot", .pid = 7};
  return worker;
}

InstanceClock Clock(const std::string& instance_id, uint64_t bound_ns) {
  InstanceClock clock;
  clock.instance_id = instance_id;
  clock.boot_id = "boot";
  clock.bound_ns = bound_ns;
  clock.likely_bound_ns = bound_ns / 10;
  clock.model.segments = {{.knots = {{1'000, 5'000, bound_ns, bound_ns / 10},
                                     {2'000, 6'000, bound_ns, bound_ns / 10}}}};
  return clock;
}

TEST(ClockJudgementTest, SaysHowWellEachClockIsKnownAndWhichIsTheWorst) {
  Certificate certificate;
  certificate.workers = {Worker("i-a"), Worker("i-b"), Worker("i-c")};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 31'240), Clock("i-b", 40'000)};
  JudgeClocks(clocks, certificate);
  EXPECT_TRUE(certificate.workers[0].clock.aligned);
  EXPECT_EQ(certificate.workers[0].clock.bound_ns, 31'240u);
  EXPECT_EQ(certificate.workers[0].clock.likely_bound_ns, 3'124u);
  EXPECT_EQ(certificate.workers[0].clock.words, "within 31.2 us");
  EXPECT_EQ(certificate.workers[2].clock.words, "not aligned");
  EXPECT_THAT(certificate.notes,
              ElementsAre("times of all instances with a known clock are within 40.0 us of the "
                          "reference, likely within 4.0 us (worst: i-b)"));
}

TEST(ClockJudgementTest, NamesTheTimesInWhichNoOrderIsKnown) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 1'000)};
  auto& knots = clocks.instances[0].model.segments[0].knots;
  knots.push_back({3'000, 7'000, 2'000'000, 1'000});
  knots.push_back({4'000, 8'000, 3'000'000, 1'000});
  knots.push_back({5'000, 9'000, 1'000, 1'000});
  knots.push_back({6'000, 10'000, 1'000, 1'000});
  JudgeClocks(clocks, certificate);
  ASSERT_EQ(certificate.notes.size(), 2u);
  EXPECT_THAT(certificate.notes[1], AllOf(HasSubstr("from 6000 to 9000 the clock of i-a"),
                                          HasSubstr("to 3.000 ms only")));
}

// A clock that stepped by much: in the hole between its segments nobody knows which one it was in.
TEST(ClockJudgementTest, DoubtsWhatLiesBetweenTwoSegmentsThatAreFarApart) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 1'000)};
  clocks.instances[0].model.segments.push_back(
      {.cause = SegmentCause::kHostEvent,
       .knots = {{1'000'000, 900'000'000, 1'000, 100}, {2'000'000, 901'000'000, 1'000, 100}}});
  JudgeClocks(clocks, certificate);
  ASSERT_EQ(certificate.notes.size(), 2u);
  EXPECT_THAT(certificate.notes[1], HasSubstr("from 6000 to 900000000 the clock of i-a"));
}

TEST(ClockJudgementTest, SaysNothingOfClocksOfWhichNothingIsKnown) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  JudgeClocks({}, certificate);
  EXPECT_FALSE(certificate.workers[0].clock.aligned);
  EXPECT_THAT(certificate.notes, IsEmpty());
}

TEST(ClockJudgementTest, KeepsTheListOfDoubtsShort) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 1'000)};
  auto& knots = clocks.instances[0].model.segments[0].knots;
  for (uint64_t i = 0; i < 40; ++i) {
    knots.push_back({3'000 + i * 3'000, 7'000 + i * 3'000, 2'000'000, 1'000});
    knots.push_back({4'000 + i * 3'000, 8'000 + i * 3'000, 1'000, 1'000});
    knots.push_back({5'000 + i * 3'000, 9'000 + i * 3'000, 1'000, 1'000});
  }
  JudgeClocks(clocks, certificate);
  EXPECT_EQ(certificate.notes.size(), 1u + 16 + 1);
  EXPECT_EQ(certificate.notes.back(), "and 24 more such times");
}

}  // namespace
}  // namespace neurontrace
