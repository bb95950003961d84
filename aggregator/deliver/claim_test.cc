// SPDX-License-Identifier: Apache-2.0
// Goal: one at a time writes a directory, whoever dies, pauses or comes at the same moment.
#include "aggregator/deliver/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/deliver/fake_volume.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class ClaimTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Claim>> Take(const std::string& name, const std::string& lock = "",
                                              const std::string& run = "") {
    const ClaimOwner owner{.name = name, .lock = lock, .run = run};
    return Claim::Take(volume_, "d", owner, clock_);
  }
  FakeVolume::Disk disk_;
  FakeVolume volume_{disk_};
  FakeClock clock_;
};

TEST_F(ClaimTest, SecondClaimantLearnsHolder) {
  const auto first = Take("agg-1 export 7");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Take("agg-2 export 1");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("written by agg-1 export 7"));
}

TEST_F(ClaimTest, IsFreeAgainOnceReleased) {
  ASSERT_TRUE(Take("a").ok());
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_TRUE(Take("b").ok());
}

TEST_F(ClaimTest, IsRenewedAndHoldsThroughManyLeases) {
  const auto first = Take("a");
  ASSERT_TRUE(first.ok());
  for (int i = 0; i < 20; ++i) {
    clock_.AdvanceNs(Claim::kClaimLeaseNs / 2);
    disk_.realtime_ns = clock_.RealtimeNs();
    ASSERT_TRUE((*first)->Keep().ok());
    ASSERT_FALSE(Take("b").ok());
    ASSERT_EQ(disk_.files.size(), 1u) << "failed claims leave no file";
  }
}

TEST_F(ClaimTest, TakesClaimOfDeadOwnerAfterLeaseAndGrace) {
  FakeVolume dying(disk_, 2);
  auto dead = Claim::Take(dying, "d", {.name = "a"}, clock_);
  ASSERT_TRUE(dead.ok());
  ASSERT_TRUE(absl::IsUnavailable(dying.Remove("x")));
  clock_.AdvanceNs(Claim::kClaimLeaseNs + Claim::kClaimGraceNs / 2);
  EXPECT_FALSE(Take("b").ok());
  clock_.AdvanceNs(Claim::kClaimGraceNs);
  const auto next = Take("b");
  ASSERT_TRUE(next.ok()) << next.status();
  // The first one comes back to life.
  EXPECT_EQ((*dead)->Keep().code(), absl::StatusCode::kAborted);
}

TEST_F(ClaimTest, TakesClaimOfEarlierProcessImmediately) {
  FakeVolume dying(disk_, 2);
  const ClaimOwner owner{.name = "a", .lock = "store", .run = "1"};
  const auto dead = Claim::Take(dying, "d", owner, clock_);
  ASSERT_TRUE(dead.ok());
  ASSERT_TRUE(absl::IsUnavailable(dying.Remove("x")));
  EXPECT_FALSE(Take("b", "store", "1").ok()) << "another export of that process";
  EXPECT_FALSE(Take("b", "another store", "2").ok());
  EXPECT_FALSE(Take("b").ok());
  const auto next = Take("b", "store", "2");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(disk_.files.size(), 1u) << "the claim of the dead owner is removed";
}

TEST_F(ClaimTest, OnePausedForLongLearnsThatItLostIt) {
  const auto paused = Take("a");
  ASSERT_TRUE(paused.ok());
  clock_.AdvanceNs(Claim::kClaimLeaseNs + 2 * Claim::kClaimGraceNs);
  const auto next = Take("b");
  ASSERT_TRUE(next.ok());
  const absl::Status lost = (*paused)->Keep();
  EXPECT_EQ(lost.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE((*next)->Keep().ok());
}

TEST_F(ClaimTest, PausedOwnerDoesNotRestoreClaim) {
  auto paused = Take("a");
  ASSERT_TRUE(paused.ok());
  clock_.AdvanceNs(Claim::kClaimLeaseNs + 2 * Claim::kClaimGraceNs);
  disk_.realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(Take("b").ok());
  ASSERT_TRUE(disk_.files.empty());
  EXPECT_EQ((*paused)->Keep().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(disk_.files.empty()) << "no other claim exists";
  const auto third = Take("c");
  ASSERT_TRUE(third.ok());
  paused->reset();
  EXPECT_EQ(disk_.files.size(), 1u) << "a claim of another owner with the same number stays";
}

TEST_F(ClaimTest, OnePausedWhileItRenewsLearnsThatItLostIt) {
  const auto paused = Take("a");
  ASSERT_TRUE(paused.ok());
  clock_.AdvanceNs(Claim::kClaimRenewNs);
  disk_.before = [this](const std::string& what, const std::string&) {
    if (what == "make once") clock_.AdvanceNs(Claim::kClaimLeaseNs);
  };
  EXPECT_EQ((*paused)->Keep().code(), absl::StatusCode::kAborted);
}

TEST_F(ClaimTest, AVolumeThatDoesNotAnswerIsNoOtherOwner) {
  const auto claim = Take("a");
  ASSERT_TRUE(claim.ok());
  disk_.files["d/claim.100.json"] = "";
  clock_.AdvanceNs(Claim::kClaimRenewNs);
  disk_.answers = false;
  EXPECT_EQ((*claim)->Keep().code(), absl::StatusCode::kUnavailable);
  disk_.answers = true;
  disk_.realtime_ns = clock_.RealtimeNs();
  clock_.AdvanceNs(Claim::kClaimRenewNs);
  EXPECT_EQ((*claim)->Keep().code(), absl::StatusCode::kAborted) << "the claim is lost";
}

TEST_F(ClaimTest, ARenewalThatFailsIsTriedAgainWhileAnOperationStillFitsIn) {
  FakeVolume failing(disk_, 2);
  const auto claim = Claim::Take(failing, "d", {.name = "a"}, clock_);
  ASSERT_TRUE(claim.ok());
  clock_.AdvanceNs(Claim::kClaimRenewNs);
  EXPECT_TRUE((*claim)->Keep().ok());
  clock_.AdvanceNs(Claim::kClaimLeaseNs - kVolumeOperationNs - Claim::kClaimRenewNs);
  EXPECT_EQ((*claim)->Keep().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClaimTest, HalfWrittenOnesAndThoseOfTheFarFutureGoByTheTimeOfTheirFile) {
  disk_.files["d/claim.3.json"] = "{\"own";
  disk_.files["d/claim.4.json"] =
      "{\"owner\":\"x\",\"lease_until_realtime_ns\":9999999999999999999}";
  disk_.files["d/claim.x.json"] = "no claim";
  EXPECT_EQ(Take("a").status().code(), absl::StatusCode::kUnavailable);
  clock_.AdvanceNs(Claim::kClaimLeaseNs + Claim::kClaimGraceNs + 1);
  const auto taken = Take("a");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(disk_.files.contains("d/claim.3.json"));
  EXPECT_TRUE(disk_.files.contains("d/claim.5.json"));
}

// Nothing tells how old it is, so that waiting does not help.
TEST_F(ClaimTest, ReportsClaimFileWithFutureTime) {
  disk_.files["d/claim.3.json"] = "{\"own";
  disk_.realtime_ns = clock_.RealtimeNs() + 1'000 * Claim::kClaimLeaseNs;
  const auto status = Take("a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("in the future"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("remove " + volume_.Where("d/claim.3.json")));
}

}  // namespace
}  // namespace neurontrace
