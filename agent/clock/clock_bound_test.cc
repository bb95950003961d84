// SPDX-License-Identifier: Apache-2.0
// ClockBound's memory, and what its promise is worth later.
#include "agent/clock/clock_bound.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/base/fake_file_system.h"
#include "lib/base/fuzz_seed.h"

namespace neurontrace {
namespace {

struct Fields {
  uint32_t magic[2] = {0x414d5a4e, 0x43420200};
  uint32_t bytes = 80;
  uint16_t version = 2;
  uint16_t generation = 4;
  int64_t as_of[2] = {1'000, 500};
  int64_t void_after[2] = {2'000, 0};
  int64_t bound_ns = 30'000;
  uint64_t marker = 77;
  uint32_t max_drift_ppb = 50'000;
  int32_t status = 1;
  uint8_t reads_vmclock = 1;
  uint8_t padding[7] = {};
};
static_assert(sizeof(Fields) == 80);

std::string MemoryOf(const Fields& fields) {
  return std::string(reinterpret_cast<const char*>(&fields), sizeof(fields));
}

absl::StatusOr<ClockBoundPromise> ReadBack(const Fields& fields) {
  FakeFileSystem files;
  files.SetContents(ClockBoundMemory::kPath, MemoryOf(fields));
  return ClockBoundMemory::Read(files, ClockBoundMemory::kPath);
}

ClockSnapshot At(uint64_t monotonic_ns) {
  return {.raw_begin_ns = 1'000,
          .raw_end_ns = 1'100,
          .realtime_ns = 1'700'000'000'000'000'000,
          .monotonic_ns = monotonic_ns};
}

TEST(ClockBound, ReadsBound) {
  const auto promise = ReadBack({});
  ASSERT_TRUE(promise.ok()) << promise.status();
  EXPECT_EQ(promise->as_of_ns, 1'000'000'000'500u);
  EXPECT_EQ(promise->void_after_ns, 2'000'000'000'000u);
  EXPECT_EQ(promise->bound_ns, 30'000u);
  EXPECT_TRUE(promise->synchronized);
  EXPECT_EQ(promise->disruption_marker, 77u);
}

TEST(ClockBound, LetsTheBoundGrowWithAge) {
  const auto promise = ReadBack({});
  ASSERT_TRUE(promise.ok());
  // 10 s later at 50 ppm: 500 us; and half of the bracket.
  const auto reading = ClockBoundMemory::Utc(*promise, At(1'010'000'000'500), 77);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->source, UtcSource::kClockBound);
  EXPECT_EQ(reading->raw_ns, 1'050u);
  EXPECT_EQ(reading->utc_latest_ns - reading->utc_earliest_ns, 2u * (530'000 + 50));
  EXPECT_EQ(reading->utc_earliest_ns + 530'050, 1'700'000'000'000'000'000u);
}

TEST(ClockBound, ReturnsNoBoundWhenUnsynchronized) {
  const uint64_t now = 1'001'000'000'000;
  EXPECT_FALSE(ClockBoundMemory::Utc(*ReadBack({.status = 2}), At(now), 77));
  EXPECT_FALSE(ClockBoundMemory::Utc(*ReadBack({.status = 3}), At(now), 77));
  EXPECT_FALSE(ClockBoundMemory::Utc(*ReadBack({}), At(2'000'000'000'001), 77)) << "expired";
  EXPECT_FALSE(ClockBoundMemory::Utc(*ReadBack({}), At(now), 78)) << "of before the migration";
  EXPECT_TRUE(ClockBoundMemory::Utc(*ReadBack({.reads_vmclock = 0}), At(now), 78));
  EXPECT_TRUE(ClockBoundMemory::Utc(*ReadBack({}), At(now), std::nullopt));
  EXPECT_FALSE(ClockBoundMemory::Utc(*ReadBack({.bound_ns = 2'000'000'000}), At(now), 77))
      << "too wide";
}

TEST(ClockBound, RejectsInvalidValues) {
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.magic = {1, 2}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.bytes = 79}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.version = 3}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.as_of = {-1, 0}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.as_of = {1, 1'000'000'000}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.void_after = {int64_t{1} << 62, 0}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadBack({.bound_ns = -1}).status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadBack({.generation = 5}).status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadBack({.generation = 0}).status()));
  FakeFileSystem files;
  EXPECT_TRUE(absl::IsNotFound(ClockBoundMemory::Read(files, ClockBoundMemory::kPath).status()));
  files.SetContents(ClockBoundMemory::kPath, "short");
  EXPECT_TRUE(
      absl::IsInvalidArgument(ClockBoundMemory::Read(files, ClockBoundMemory::kPath).status()));
}

// Not a test: see lib/base/fuzz_seed.h. The first byte is the fuzzer's own.
TEST(ClockBound, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  WriteFuzzSeed("clock_pages_fuzzer", "clock_bound", '\0' + MemoryOf({}));
}

}  // namespace
}  // namespace neurontrace
