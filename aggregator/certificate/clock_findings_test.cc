// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/clock_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
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
  clock.realtime = *ClockMap::FromPieces({{1'000, 5'000, 0, bound_ns}});
  return clock;
}

TEST(ClockFindingsTest, ReportsBoundOfEachClockAndTheWorst) {
  Certificate certificate;
  certificate.workers = {Worker("i-a"), Worker("i-b"), Worker("i-c")};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 31'240), Clock("i-b", 40'000)};
  clocks.window = {5'000, 6'000};
  AddClockFindings(clocks, certificate);
  EXPECT_TRUE(certificate.workers[0].clock.aligned);
  EXPECT_EQ(certificate.workers[0].clock.bound_ns, 31'240u);
  EXPECT_EQ(certificate.workers[0].clock.likely_bound_ns, 3'124u);
  EXPECT_EQ(certificate.workers[0].clock.words, "within 31.2 us");
  EXPECT_EQ(certificate.workers[2].clock.words, "not aligned");
  EXPECT_THAT(certificate.notes,
              ElementsAre("times of all instances with a known clock are within 40.0 us of the "
                          "reference, likely within 4.0 us (worst: i-b)"));
}

TEST(ClockFindingsTest, ReportsImpossibleOrder) {
  CaptureClocks clocks;
  clocks.order = {{.event_type = "cc_running", .instances = 9, .words = "all in order"},
                  {.event_type = "enc_barrier", .instances = 9, .violated = 1, .words = "1 of 9"}};
  Certificate certificate;
  AddClockFindings(clocks, certificate);
  EXPECT_THAT(certificate.notes, ElementsAre("1 of 9"));
}

constexpr uint64_t kMillisecond = 1'000'000;

// From 0 of the reference on, each for a millisecond.
InstanceClock ClockOfBounds(const std::vector<uint64_t>& bounds) {
  std::vector<ClockMap::Piece> pieces;
  for (const uint64_t bound_ns : bounds) {
    const uint64_t begin_ns = pieces.size() * kMillisecond;
    pieces.push_back({begin_ns, begin_ns, 0, bound_ns});
  }
  InstanceClock clock = Clock("i-a", 1'000);
  clock.realtime = *ClockMap::FromPieces(std::move(pieces));
  return clock;
}

TEST(ClockFindingsTest, NamesTheTimesInWhichNoOrderIsKnown) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  CaptureClocks clocks;
  clocks.instances = {
      ClockOfBounds({9'000'000, 1'000, 1'000, 2'000'000, 3'000'000, 1'000, 1'000, 9'000'000})};
  clocks.window = {1 * kMillisecond, 7 * kMillisecond - 1};
  AddClockFindings(clocks, certificate);
  ASSERT_EQ(certificate.notes.size(), 2u);  // the first and the last are beyond the capture
  EXPECT_THAT(certificate.notes[1],
              AllOf(HasSubstr("from 0.002 s to 0.004 s of the capture the clock of i-a"),
                    HasSubstr("only known to within 3.000 ms")));
}

// As where the evidence of a stretch is missing.
TEST(ClockFindingsTest, AClockThatIsNotKnownMakesTheCaptureIncomplete) {
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 31'240), ClockOfBounds({1'000, UINT64_MAX, UINT64_MAX, 1'000})};
  clocks.instances[1].instance_id = "i-b";
  clocks.instances[1].bound_ns = clocks.instances[1].likely_bound_ns = UINT64_MAX;
  clocks.window = {0, 4 * kMillisecond - 1};
  for (const bool is_provisional : {false, true}) {
    Certificate certificate;
    certificate.workers = {Worker("i-a"), Worker("i-b")};
    certificate.provisional = is_provisional;
    certificate.complete = !is_provisional;
    AddClockFindings(clocks, certificate);
    EXPECT_TRUE(certificate.workers[0].clock.aligned);
    EXPECT_FALSE(certificate.workers[1].clock.aligned);
    EXPECT_EQ(certificate.workers[1].clock.bound_ns, 0u);
    EXPECT_THAT(certificate.workers[1].clock.words, HasSubstr("not known"));
    EXPECT_FALSE(certificate.complete);
    const auto finding = HasSubstr("the clock of i-b is unknown for a part of the capture");
    if (is_provisional) {
      EXPECT_THAT(certificate.findings, IsEmpty());
      EXPECT_THAT(certificate.notes, Contains(finding));
    } else {
      EXPECT_THAT(certificate.findings, ElementsAre(finding));
      EXPECT_THAT(certificate.verdict, HasSubstr("incomplete: the clock of i-b"));
    }
    EXPECT_THAT(certificate.notes,
                Contains(HasSubstr("of the capture the clock of i-b is unknown")));
    for (const std::string& note : certificate.notes) {
      EXPECT_EQ(note.find("nothing"), std::string::npos) << note;
      EXPECT_EQ(note.find("18446744"), std::string::npos) << note;
    }
  }
}

TEST(ClockFindingsTest, ReportsNothingAboutUnknownClocks) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  AddClockFindings({}, certificate);
  EXPECT_FALSE(certificate.workers[0].clock.aligned);
  EXPECT_THAT(certificate.notes, IsEmpty());
}

TEST(ClockFindingsTest, KeepsTheListOfDoubtsShort) {
  Certificate certificate;
  certificate.workers = {Worker("i-a")};
  CaptureClocks clocks;
  std::vector<uint64_t> bounds = {1'000, 1'000};
  for (int i = 0; i < 40; ++i) bounds.insert(bounds.end(), {2'000'000, 1'000, 1'000});
  clocks.instances = {ClockOfBounds(bounds)};
  clocks.window = {0, bounds.size() * kMillisecond - 1};
  AddClockFindings(clocks, certificate);
  EXPECT_EQ(certificate.notes.size(), 1u + 16 + 1);
  EXPECT_EQ(certificate.notes.back(), "and 24 more such times");
}

TEST(ClockFindingsTest, FilesWithTimesOfTheirOwnAreWithinNothing) {
  Certificate certificate;
  certificate.workers = {Worker("i-a"), Worker("i-b")};
  StreamCertificate own;
  own.own_time = true;
  certificate.workers[0].streams = {own};
  certificate.workers[1].streams = {own, StreamCertificate()};
  CaptureClocks clocks;
  clocks.instances = {Clock("i-a", 50'000), Clock("i-b", 40'000)};
  clocks.window = {5'000, 6'000};
  AddClockFindings(clocks, certificate);
  EXPECT_FALSE(certificate.workers[0].clock.aligned);
  EXPECT_EQ(certificate.workers[0].clock.words, "own time, not aligned");
  EXPECT_EQ(certificate.workers[1].clock.words, "within 40.0 us, 1 of 2 files not aligned");
  EXPECT_THAT(certificate.notes, ElementsAre(HasSubstr("(worst: i-b)")));
}

}  // namespace
}  // namespace neurontrace
