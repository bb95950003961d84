// SPDX-License-Identifier: Apache-2.0
// Goal: the arrows of a framework's file connect the spans that it says, and no others. Method:
// spans and points as files have them, read in batches of a few records.
#include "aggregator/derive/framework_arrows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "aggregator/derive/derive_fixture.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class FrameworkArrowsTest : public DeriveTest {
 protected:
  void SetUp() override { stream_ = AddStream(Framework("i-a", 0)); }

  void Span(const std::string& name, uint64_t thread, uint64_t start, uint64_t end) {
    script(stream_).Complete(
        "cpu_op", kBase + start, 0, thread,
        {{"name", name, KeyScope::kTop}, {"dur_ns", end - start, KeyScope::kTop}});
  }
  void Point(Phase phase, EventScript::Value id, uint64_t thread, uint64_t at,
             const std::string& category = "ac2g") {
    script(stream_).Add(category, phase, kBase + at, 0, thread,
                        {{"flow_id", std::move(id), KeyScope::kTop}});
  }
  void Start(uint64_t id, uint64_t thread, uint64_t at) {
    Point(Phase::kFlowStart, id, thread, at);
  }
  void End(uint64_t id, uint64_t thread, uint64_t at) { Point(Phase::kFlowEnd, id, thread, at); }

  // "from>to" of each arrow, in the order in which they are found.
  std::vector<std::string> Arrows() {
    FrameworkArrows arrows;
    std::map<uint64_t, std::string> names;
    std::vector<std::string> found;
    Read([](const TimelineReader&) {},
         [&](const TimelineBatch& batch) {
           arrows.StartBatch();
           for (const TimelineRecord* record : batch.records) {
             if (record->kind != RecordKind::kSpan) {
               arrows.AddPoint(record->thread_id, *record);
               continue;
             }
             const uint64_t number = names.size() + 1;
             names[number] = record->text(*FindAttribute(*record, KeyScope::kTop, "name"));
             arrows.AddSpan(
                 record->thread_id,
                 {.number = number, .start_ns = record->start_ns, .end_ns = record->end_ns});
           }
           arrows.EndBatch();
           for (const ArrowFinding& finding : arrows.findings()) {
             if (finding.kind != ArrowFinding::Kind::kArrow) continue;
             found.push_back(names[finding.from.number] + ">" + names[finding.to.number]);
           }
           arrows.findings().clear();
         });
    warnings_ = arrows.Warnings();
    return found;
  }

  uint32_t stream_ = 0;
  std::vector<std::string> warnings_;
};

TEST_F(FrameworkArrowsTest, ConnectsEachEndToItsStart) {
  for (uint64_t i = 0; i < 20; ++i) {
    Span(fmt::format("launch{}", i), 1, 100 * i, 100 * i + 5);
    Start(i, 1, 100 * i);
    Span(fmt::format("kernel{}", i), 7, 100 * i + 50, 100 * i + 150);
    End(i, 7, 100 * i + 50);
  }
  const auto arrows = Arrows();
  ASSERT_EQ(arrows.size(), 20u);
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(arrows[i], fmt::format("launch{0}>kernel{0}", i));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(FrameworkArrowsTest, ConnectsAllEndsOfOneStartToIt) {
  Span("graph", 1, 0, 5);
  Start(5, 1, 0);
  for (uint64_t i = 0; i < 5; ++i) {
    Span(fmt::format("kernel{}", i), 7, 100 + 10 * i, 108 + 10 * i);
    End(5, 7, 100 + 10 * i);
  }
  EXPECT_THAT(Arrows(), ElementsAre("graph>kernel0", "graph>kernel1", "graph>kernel2",
                                    "graph>kernel3", "graph>kernel4"));
}

TEST_F(FrameworkArrowsTest, LeavesEndsWithoutAStartUnconnected) {
  for (uint64_t i = 0; i < 5; ++i) {
    Span(fmt::format("kernel{}", i), 7, 10 * i, 10 * i + 8);
    End(5, 7, 10 * i);
  }
  EXPECT_THAT(Arrows(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("5 of 5 arrow ends")));
}

TEST_F(FrameworkArrowsTest, ConnectsAnEndThatComesShortlyBeforeItsStart) {
  Span("early", 7, 109, 124);
  End(2, 7, 109);
  Span("late", 1, 110, 130);
  Start(2, 1, 110);
  // The start of this end was before the capture: a second later its id is used again.
  Span("orphan", 7, 200, 210);
  End(3, 7, 200);
  const uint64_t later = 201 + FrameworkArrows::kEarlyNs;
  Span("again", 1, later, later + 5);
  Start(3, 1, later);
  EXPECT_THAT(Arrows(), ElementsAre("late>early"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("1 of 2 arrow ends")));
}

TEST_F(FrameworkArrowsTest, ResolvesPointsOfOneTimeStartsFirst) {
  Span("kernel", 7, 10, 30);
  End(1, 7, 10);
  Span("launch", 1, 10, 25);
  Start(1, 1, 10);
  EXPECT_THAT(Arrows(), ElementsAre("launch>kernel"));
}

TEST_F(FrameworkArrowsTest, PrefersASpanWithALengthAtItsBegin) {
  Span("outer", 1, 0, 100);
  Span("set_attribute", 1, 10, 10);
  Span("launch", 1, 10, 17);
  Start(1, 1, 10);
  Span("no_length", 1, 50, 50);
  Start(2, 1, 50);
  Start(3, 1, 60);
  Start(4, 1, 100);
  Span("next", 1, 100, 110);
  for (uint64_t id = 1; id <= 4; ++id) {
    Span(fmt::format("end{}", id), 7, 200 * id, 200 * id + 10);
    End(id, 7, 200 * id + 10);
  }
  EXPECT_THAT(Arrows(), ElementsAre("launch>end1", "no_length>end2", "outer>end3", "next>end4"))
      << "an end at the end of its span";
}

TEST_F(FrameworkArrowsTest, DistinguishesOverlappingKernels) {
  for (uint64_t i = 1; i <= 3; ++i) {
    Span(fmt::format("launch{}", i), 1, 10 * i, 10 * i + 5);
    Start(i, 1, 10 * i);
  }
  Span("kernel1", 7, 100, 200);
  End(1, 7, 100);
  Span("kernel2", 7, 150, 250);
  End(2, 7, 150);
  Span("kernel3", 7, 180, 300);
  End(3, 7, 180);
  EXPECT_THAT(Arrows(), ElementsAre("launch1>kernel1", "launch2>kernel2", "launch3>kernel3"));
}

TEST_F(FrameworkArrowsTest, FollowsStepsFromSpanToSpan) {
  for (uint64_t i = 0; i < 4; ++i) Span(fmt::format("s{}", i), i, 10 * i, 10 * i + 5);
  Start(1, 0, 0);
  Point(Phase::kFlowStep, uint64_t{1}, 1, 10);
  Point(Phase::kFlowStep, uint64_t{1}, 2, 20);
  End(1, 3, 30);
  EXPECT_THAT(Arrows(), ElementsAre("s0>s1", "s1>s2", "s2>s3"));
}

// EndBatch asserts that such a step leaves no entry, which nothing would remove.
TEST_F(FrameworkArrowsTest, RemembersNothingOfStepsWithoutAStart) {
  for (uint64_t i = 0; i < 5; ++i) {
    Span(fmt::format("s{}", i), i, 10 * i, 10 * i + 5);
    Point(Phase::kFlowStep, i, i, 10 * i);
  }
  EXPECT_THAT(Arrows(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("5 of 5 arrow ends")));
}

TEST_F(FrameworkArrowsTest, KeepsCategoriesAndIdsApart) {
  for (uint64_t i = 0; i < 4; ++i) Span(fmt::format("s{}", i), i, 10 * i, 10 * i + 5);
  Point(Phase::kFlowStart, uint64_t{1}, 0, 0, "ac2g");
  Point(Phase::kFlowStart, uint64_t{1}, 1, 10, "fwdbwd");
  Point(Phase::kFlowEnd, uint64_t{1}, 2, 20, "fwdbwd");
  Point(Phase::kFlowEnd, uint64_t{1}, 3, 30, "ac2g");
  EXPECT_THAT(Arrows(), UnorderedElementsAre("s1>s2", "s0>s3"));
}

TEST_F(FrameworkArrowsTest, DrawsNothingFromAStartWithoutASpan) {
  Span("before", 1, 0, 5);
  Start(1, 1, 0);
  Start(1, 1, 50);
  Span("kernel", 7, 100, 110);
  End(1, 7, 100);
  EXPECT_THAT(Arrows(), IsEmpty()) << "the id was used again";
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("1 of 1 arrow ends"), HasSubstr("1 of 3 arrow points")));
}

}  // namespace
}  // namespace neurontrace
