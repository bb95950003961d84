// SPDX-License-Identifier: Apache-2.0
// How much a capture may store by each quota, and what is said where it may not.
#include "aggregator/session/capture_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMb = 1'000'000;

TEST(CaptureQuota, WithoutQuotasOnlyItsOwnLimit) {
  EXPECT_EQ(Admit({}, {}, {})->bytes, CaptureAllowance::kNoLimit);
  const auto own = Admit({.budget = {.stored_bytes_max = 7 * kMb}}, {}, {});
  EXPECT_EQ(own->bytes, 7 * kMb);
  EXPECT_EQ(own->words, "its limit of 7.0 MB");
}

TEST(CaptureQuota, TheSmallestThatAppliesCounts) {
  const CaptureQuotas quotas = {
      .capture_bytes = 50 * kMb, .job_bytes = 100 * kMb, .store_bytes = 1'000 * kMb};
  EXPECT_EQ(Admit({}, quotas, {.store_bytes = 10 * kMb})->bytes, 50 * kMb);
  const auto job = Admit({}, quotas, {.store_bytes = 90 * kMb, .job = "j", .job_bytes = 80 * kMb});
  EXPECT_EQ(job->bytes, 20 * kMb);
  EXPECT_THAT(job->words, HasSubstr("of job j"));
  const auto store = Admit({}, quotas, {.store_bytes = 995 * kMb, .job = "j", .job_bytes = 1});
  EXPECT_EQ(store->bytes, 5 * kMb);
  // What it has stored itself before a restart is in both.
  const auto again = Admit({}, quotas, {.store_bytes = 995 * kMb, .own_bytes = 4 * kMb});
  EXPECT_EQ(again->bytes, 9 * kMb);
}

TEST(CaptureQuota, RunningCaptureUsesRemainingQuota) {
  const CaptureQuotas store = {.store_bytes = 6'000 * kMb};
  // A continuous one that is as large as it is to be, which is most of the store.
  const CaptureSpec continuous = {.mode = CaptureMode::kContinuous,
                                  .retention = {.bytes = 4'000 * kMb}};
  EXPECT_TRUE(Admit(continuous, store, {}).ok());
  EXPECT_TRUE(
      Admit(continuous, store, {.store_bytes = 4'000 * kMb, .own_bytes = 4'000 * kMb}).ok());
  // Others took what it asked for while it was small: it continues as far as it can.
  EXPECT_TRUE(
      Admit(continuous, store, {.store_bytes = 3'500 * kMb, .own_bytes = 1'000 * kMb}).ok());
  const CaptureQuotas job = {.job_bytes = 5'000 * kMb};
  const CaptureSpec stream = {.budget = {.stored_bytes_max = 4'000 * kMb}};
  const auto at_3_gb =
      Admit(stream, job, {.job = "j", .job_bytes = 3'000 * kMb, .own_bytes = 3'000 * kMb});
  ASSERT_TRUE(at_3_gb.ok());
  EXPECT_EQ(at_3_gb->bytes, 4'000 * kMb);
  const auto at_its_end =
      Admit({}, job, {.job = "j", .job_bytes = 5'000 * kMb, .own_bytes = 5'000 * kMb});
  ASSERT_TRUE(at_its_end.ok());
  EXPECT_EQ(at_its_end->bytes, 5'000 * kMb);
  // Others have used it up.
  const auto beside =
      Admit({}, job, {.job = "j", .job_bytes = 5'100 * kMb, .own_bytes = 100 * kMb});
  ASSERT_TRUE(beside.ok());
  EXPECT_EQ(beside->bytes, 0u);
}

TEST(CaptureQuota, ContinuousCaptureUsesRemainingJobQuota) {
  const CaptureQuotas quotas = {.job_bytes = 5'000 * kMb};
  const CaptureSpec spec = {.mode = CaptureMode::kContinuous, .retention = {.bytes = 4'000 * kMb}};
  const auto alone =
      Admit(spec, quotas, {.job = "j", .job_bytes = 4'100 * kMb, .own_bytes = 4'100 * kMb});
  EXPECT_GT(alone->bytes, 4'100 * kMb);
  const auto beside =
      Admit(spec, quotas, {.job = "j", .job_bytes = 5'000 * kMb, .own_bytes = 1'000 * kMb});
  EXPECT_EQ(beside->bytes, 1'500 * kMb);
  EXPECT_THAT(beside->words, HasSubstr("of job j"));
}

TEST(CaptureQuota, RefusesWithTheNumbers) {
  const auto used_up =
      Admit({}, {.job_bytes = 100 * kMb}, {.job = "llama", .job_bytes = 100 * kMb});
  EXPECT_EQ(used_up.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(used_up.status().message()),
            "the quota of job llama is exhausted: 100.0 MB of 100.0 MB are stored; delete captures "
            "or raise --quota-job-bytes of the aggregator");
  const auto too_much = Admit({.budget = {.stored_bytes_max = 30 * kMb}},
                              {.store_bytes = 100 * kMb}, {.store_bytes = 80 * kMb});
  EXPECT_THAT(std::string(too_much.status().message()),
              HasSubstr("may need 30.0 MB, but the quota of the store has 20.0 MB left"));
  const auto standing = Admit({.mode = CaptureMode::kContinuous, .retention = {.bytes = 200 * kMb}},
                              {.capture_bytes = 100 * kMb}, {});
  EXPECT_EQ(standing.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CaptureQuota, AllowsCapturesThatStoreNothing) {
  const CaptureQuotas quotas = {.store_bytes = 1};
  const StoreUse use = {.store_bytes = 2};
  EXPECT_TRUE(Admit({.mode = CaptureMode::kFlightRecorder}, quotas, use).ok());
  EXPECT_TRUE(Admit({.mode = CaptureMode::kPreview}, quotas, use).ok());
  EXPECT_FALSE(Admit({.mode = CaptureMode::kSnapshot}, quotas, use).ok());
}

TEST(CaptureQuota, BytesForPeople) {
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1'500), "1.5 kB");
  EXPECT_EQ(BytesText(999'990), "1.0 MB");
  EXPECT_EQ(BytesText(5'000'000'000), "5.0 GB");
}

}  // namespace
}  // namespace neurontrace
