// SPDX-License-Identifier: Apache-2.0
// Goal: what several instances did together is held against their clocks, and what is concluded is
// no more than the events allow. Method: two cores on two instances whose collectives are in a true
// order, with clocks that are right, off within their bounds, or off beyond them.
#include "aggregator/clocks/order_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "aggregator/clocks/core_world_test_support.h"
#include "aggregator/clocks/event_clocks.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kUs = 1'000;
constexpr int64_t kOrderMs = 1'000'000;
constexpr size_t kExecutions = 40;
constexpr size_t kCollectives = 3;

class OrderCheckerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok()); }

  static TestCoreWorld::Options Rank(int64_t rank, int64_t world_size = 2) {
    return {.seed = static_cast<uint64_t>(rank) + 1, .rank = rank, .world_size = world_size};
  }
  // Nobody leaves before 10 us after the last has entered.
  std::vector<TestCoreWorld::Meeting> Meet(int64_t at_ns) {
    const int64_t a = at_ns + static_cast<int64_t>(random_() % (2'000 * kUs));
    const int64_t b = at_ns + static_cast<int64_t>(random_() % (2'000 * kUs));
    const int64_t release_ns = std::max(a, b) + 10 * kUs;
    return {{a, release_ns}, {b, release_ns + 3 * kUs}};
  }
  // Both execute at about the same times.
  void Execute(TestCoreWorld& a, TestCoreWorld& b, size_t executions = kExecutions) {
    for (size_t i = 0; i < executions; ++i) {
      const int64_t start_ns = (100 + static_cast<int64_t>(i) * 50) * kOrderMs;
      std::vector<TestCoreWorld::Meeting> of_a, of_b;
      for (size_t k = 0; k < kCollectives; ++k) {
        const auto both = Meet(start_ns + static_cast<int64_t>(k + 1) * 4 * kOrderMs);
        of_a.push_back(both[0]);
        of_b.push_back(both[1]);
      }
      const auto barrier = Meet(start_ns - 10 * kOrderMs);
      a.Execute(start_ns, 20 * kOrderMs, of_a, barrier[0]);
      b.Execute(start_ns, 20 * kOrderMs, of_b, barrier[1]);
    }
  }
  void Put(TestCoreWorld& a, TestCoreWorld& b) {
    a.Put(*store_, 1, TestStream(0, "agent-a"));
    b.Put(*store_, 1, TestStream(0, "agent-b"));
  }
  // The second instance's clock is taken to be so far ahead of what it is.
  std::vector<OrderCheck> Check(int64_t off_ns = 0, uint64_t bound_ns = 5'000,
                                OrderClasses classes = {}) {
    CaptureClocks clocks;
    for (const std::string id : {"i-agent-a", "i-agent-b"}) {
      InstanceClock& clock = clocks.instances.emplace_back();
      clock.instance_id = id;
      clock.boot_id = "boot";
      clock.model.segments.push_back({SegmentCause::kBegin, {{1, 1, bound_ns, bound_ns}}});
      const auto begin = static_cast<uint64_t>(kTestHostBegin);
      const uint64_t reference =
          begin + static_cast<uint64_t>(id == "i-agent-b" ? off_ns : int64_t{0});
      clock.realtime = *ClockMap::FromPieces({{begin, reference, 0, bound_ns}});
    }
    const CaptureReader reader = store_->OpenCapture(TestCaptureId(1));
    const auto streams = reader.Streams();
    EXPECT_TRUE(streams.ok()) << streams.status();
    const absl::Status added = AddEventClocks(reader, *streams, classes, clocks);
    EXPECT_TRUE(added.ok()) << added;
    return clocks.order;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {.in_memory = true}).value();
  std::mt19937_64 random_{7};
};

TEST_F(OrderCheckerTest, CorrectClocksShowNoViolation) {
  TestCoreWorld a(Rank(0)), b(Rank(1));
  Execute(a, b);
  Put(a, b);
  const auto checks = Check();
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].event_type, "cc_running");
  EXPECT_EQ(checks[0].world_size, 2);
  EXPECT_EQ(checks[0].events, 2 * kExecutions * kCollectives);
  EXPECT_EQ(checks[0].instances, kExecutions * kCollectives);
  EXPECT_EQ(checks[1].event_type, "enc_barrier");
  EXPECT_EQ(checks[1].instances, kExecutions);
  for (const OrderCheck& check : checks) {
    EXPECT_TRUE(check.is_conclusive);
    EXPECT_EQ(check.left_out, 0u);
    EXPECT_EQ(check.violated, 0u);
    EXPECT_THAT(check.violations, IsEmpty());
    EXPECT_THAT(check.words, HasSubstr("0 of"));
  }
}

TEST_F(OrderCheckerTest, OffsetWithinBoundExplainsViolation) {
  TestCoreWorld a(Rank(0)), b(Rank(1));
  Execute(a, b);
  Put(a, b);
  const auto checks = Check(-100 * kUs, 150'000);
  ASSERT_THAT(checks, SizeIs(2));
  for (const OrderCheck& check : checks) {
    EXPECT_TRUE(check.is_conclusive);
    EXPECT_GT(check.violated, check.instances / 4) << "the first instance entered last";
    EXPECT_EQ(check.beyond_bounds, 0u);
    EXPECT_GE(check.worst_ns, 70 * kUs);
    EXPECT_LE(check.worst_ns, 100 * kUs);
    EXPECT_THAT(check.words, HasSubstr("which the clocks' bounds explain"));
    ASSERT_FALSE(check.violations.empty());
    EXPECT_LE(check.violations.size(), limits::kOrderViolationsShownMax);
    for (const OrderViolation& violation : check.violations) {
      EXPECT_EQ(violation.entered_by, "i-agent-a");
      EXPECT_EQ(violation.left_by, "i-agent-b");
      EXPECT_TRUE(violation.is_within_bounds());
    }
  }
}

TEST_F(OrderCheckerTest, ReportsUnexplainedViolations) {
  TestCoreWorld a(Rank(0)), b(Rank(1));
  Execute(a, b, 400);
  // One collective of many in which a leaves 5 ms before b enters.
  a.Execute(21'000 * kOrderMs, 20 * kOrderMs, {{21'002 * kOrderMs, 21'003 * kOrderMs}});
  b.Execute(21'000 * kOrderMs, 20 * kOrderMs, {{21'008 * kOrderMs, 21'009 * kOrderMs}});
  Put(a, b);
  const auto checks = Check();
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_TRUE(checks[0].is_conclusive);
  EXPECT_EQ(checks[0].violated, 1u);
  EXPECT_EQ(checks[0].beyond_bounds, 1u);
  ASSERT_THAT(checks[0].violations, SizeIs(1));
  EXPECT_EQ(checks[0].violations[0].exec_id, 401u);
  EXPECT_FALSE(checks[0].violations[0].is_within_bounds());
  EXPECT_THAT(checks[0].words, HasSubstr("1 of them by more than"));
}

TEST_F(OrderCheckerTest, DifferentlyNumberedExecutionsAreInconclusive) {
  TestCoreWorld a(Rank(0)), b(Rank(1));
  b.Execute(40 * kOrderMs, 5 * kOrderMs);  // a warm-up on this one alone
  Execute(a, b);
  Put(a, b);
  for (const OrderCheck& check : Check()) {
    EXPECT_FALSE(check.is_conclusive);
    EXPECT_GT(check.beyond_bounds, 10u);
    EXPECT_THAT(check.violations, IsEmpty());
    EXPECT_THAT(check.words, HasSubstr("the clocks cannot be judged"));
  }
}

TEST_F(OrderCheckerTest, CoresOfTheSameRankAreNotCompared) {
  TestCoreWorld a(Rank(1)), b(Rank(1));
  Execute(a, b);
  Put(a, b);
  const auto checks = Check();
  ASSERT_THAT(checks, SizeIs(2));
  for (const OrderCheck& check : checks) {
    EXPECT_FALSE(check.is_conclusive);
    EXPECT_EQ(check.instances, 0u);
    EXPECT_EQ(check.left_out, check.events);
    EXPECT_THAT(check.words, HasSubstr("the same rank"));
  }
}

TEST_F(OrderCheckerTest, CoresWithoutARankAreNotCompared) {
  TestCoreWorld a(Rank(0, 0)), b(Rank(1, 0));
  Execute(a, b);
  Put(a, b);
  const auto checks = Check();
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].instances, 0u);
  EXPECT_THAT(checks[0].words, HasSubstr("it is unknown which cores are ranks of one job"));
}

TEST_F(OrderCheckerTest, ClassesAreSwitchedOneByOne) {
  TestCoreWorld a(Rank(0)), b(Rank(1));
  Execute(a, b);
  Put(a, b);
  EXPECT_THAT(Check(0, 5'000, {.collectives = false, .barriers = false}), IsEmpty());
  const auto barriers = Check(0, 5'000, {.collectives = false});
  ASSERT_THAT(barriers, SizeIs(1));
  EXPECT_EQ(barriers[0].event_type, "enc_barrier");
  const auto collectives = Check(0, 5'000, {.barriers = false});
  ASSERT_THAT(collectives, SizeIs(1));
  EXPECT_EQ(collectives[0].event_type, "cc_running");
}

}  // namespace
}  // namespace neurontrace
