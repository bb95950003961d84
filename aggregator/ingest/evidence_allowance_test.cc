// SPDX-License-Identifier: Apache-2.0
// Goal: an honest agent never meets the limit, whatever happened to it; one that lies gets no more
// than that into the store.
#include "aggregator/ingest/evidence_allowance.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/clock_evidence_limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600 * kNsPerSecond;

TEST(EvidenceAllowanceTest, AcceptsBacklogAfterHalfDayOffline) {
  EvidenceAllowance allowance;
  uint64_t now_ns = 5;
  uint64_t backlog = 0;
  for (; backlog < 2 * limits::kClockBacklogBytesMax; backlog += 250) {  // it sends it twice
    ASSERT_TRUE(allowance.Take("i-1", 250, now_ns).ok());
  }
  for (int batch = 0; batch < 24 * 1'800; ++batch) {
    now_ns += 2 * kNsPerSecond;
    ASSERT_TRUE(allowance.Take("i-1", 700, now_ns).ok());
  }
}

TEST(EvidenceAllowanceTest, LimitsEvidencePerInstance) {
  EvidenceAllowance allowance;
  constexpr size_t kRow = limits::kClockBatchBytesMax;
  uint64_t stored = 0;
  for (uint64_t second = 0; second < 10 * 3'600; second += 10) {
    for (int i = 0; i < 100; ++i) {
      if (allowance.Take("i-1", kRow, second * kNsPerSecond).ok()) stored += kRow;
    }
  }
  EXPECT_LE(stored, limits::kClockHostBytesAtOnceMax + 10 * limits::kClockHostBytesPerHourMax);
  EXPECT_GE(stored, limits::kClockHostBytesAtOnceMax + 9 * limits::kClockHostBytesPerHourMax);
  absl::Status status = allowance.Take("i-1", kRow, 10 * kHourNs);  // what is left, at most
  status = allowance.Take("i-1", kRow, 10 * kHourNs);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(allowance.Take("i-2", kRow, 10 * kHourNs).ok());
  EXPECT_FALSE(allowance.Take("i-3", limits::kClockHostBytesAtOnceMax + 1, 0).ok());
}

TEST(EvidenceAllowanceTest, LimitsInstances) {
  EvidenceAllowance allowance;
  for (size_t i = 0; i < limits::kClockHostsMax; ++i) {
    ASSERT_TRUE(allowance.Take("i-" + std::to_string(i), 1'000, kHourNs).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(allowance.Take("i-x", 1'000, kHourNs)));
  EXPECT_TRUE(allowance.Take("i-7", 1'000, kHourNs).ok()) << "a known instance is accepted";
  // Those that have sent nothing for a while make place.
  EXPECT_TRUE(allowance.Take("i-x", 1'000, kHourNs + 60 * kNsPerSecond).ok());
}

}  // namespace
}  // namespace neurontrace
