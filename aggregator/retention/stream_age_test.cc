// SPDX-License-Identifier: Apache-2.0
// Age by stamps where these make sense, by receipt where not.
#include "aggregator/retention/stream_age.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/time_units.h"
#include "lib/trace/chunk_header.h"

namespace neurontrace {
namespace {

constexpr uint64_t kNowNs = 1'000'000 * kNsPerSecond;

RetentionTime At(uint64_t seconds) {
  return {.reference_ns = kNowNs + seconds * kNsPerSecond,
          .realtime_ns = kNowNs + seconds * kNsPerSecond,
          .monotonic_ns = (5'000 + seconds) * kNsPerSecond};
}

// Of a stream that has had `chunks` chunks, the last of them stamped so.
StreamRecord Record(uint64_t chunks, uint64_t last_timestamp_ns) {
  StreamRecord record;
  record.next_sequence = record.chunks = chunks;
  record.events = 10 * chunks;
  record.first_timestamp_ns = last_timestamp_ns - 20 * kNsPerSecond;
  record.last_timestamp_ns = last_timestamp_ns;
  return record;
}

ClockMap AheadBy(uint64_t ns) {
  return *ClockMap::FromPieces(
      {{.raw_begin_ns = kNowNs / 2 + ns, .reference_begin_ns = kNowNs / 2, .rate = 0}});
}

TEST(StreamAge, IsThatOfTheStampsByTheAggregatorsClock) {
  StreamAge age(10 * kNsPerSecond);
  const ClockMap same;
  age.RecordStream(Record(5, kNowNs), same, At(0));
  EXPECT_FALSE(age.is_by_receipt());
  EXPECT_EQ(age.OlderThan(10 * kNsPerSecond).before_raw_ns, kNowNs - 10 * kNsPerSecond);
  EXPECT_EQ(age.OlderThan(10 * kNsPerSecond).before_sequence, 0u);
  EXPECT_EQ(age.OldestNs(), 20 * kNsPerSecond);

  // An hour ahead, and that is known.
  const ClockMap ahead = AheadBy(3'600 * kNsPerSecond);
  StreamAge mapped(10 * kNsPerSecond);
  mapped.RecordStream(Record(5, kNowNs + 3'600 * kNsPerSecond), ahead, At(0));
  EXPECT_FALSE(mapped.is_by_receipt());
  EXPECT_EQ(mapped.OlderThan(10 * kNsPerSecond).before_raw_ns, kNowNs + 3'590 * kNsPerSecond);
  EXPECT_EQ(mapped.OldestNs(), 20 * kNsPerSecond);
}

TEST(StreamAge, WithStampsThatMakeNoSenseItIsThatOfReceipt) {
  const ClockMap same;
  for (const uint64_t base_ns : {kNowNs + 3'600 * kNsPerSecond, kNowNs - 3'600 * kNsPerSecond}) {
    StreamAge age(10 * kNsPerSecond);
    for (uint64_t second = 0; second <= 30; ++second) {
      age.RecordStream(Record(10 * (second + 1), base_ns + second * kNsPerSecond), same,
                       At(second));
    }
    EXPECT_TRUE(age.is_by_receipt());
    const TrimRequest request = age.OlderThan(10 * kNsPerSecond);
    EXPECT_EQ(request.before_raw_ns, 0u);
    EXPECT_EQ(request.before_sequence, 210u);  // what had come by second 20
    EXPECT_EQ(age.OldestNs(), 30 * kNsPerSecond);
  }
}

TEST(StreamAge, ExpiresByReceiptAtTwiceTheAge) {
  const ClockMap same;
  StreamAge age(100 * kNsPerSecond);
  for (uint64_t second = 0; second <= 250; second += 10) {
    age.RecordStream(Record(second + 1, kNowNs + second * kNsPerSecond), same, At(second));
  }
  EXPECT_FALSE(age.is_by_receipt());
  EXPECT_EQ(age.OlderThan(100 * kNsPerSecond).before_sequence, 51u);
}

TEST(StreamAge, FewMarksAreEnough) {
  const ClockMap same;
  StreamAge age(0);
  for (uint64_t second = 0; second < 10'000; ++second) {
    age.RecordStream(Record(second + 1, 1'000 * kNsPerSecond), same, At(second));
  }
  // Thinned out, marks say that something is younger than it is, never older.
  const uint64_t before = age.OlderThan(5'000 * kNsPerSecond).before_sequence;
  EXPECT_LE(before, 5'000u);
  EXPECT_GT(before, 4'000u);
}

TEST(StreamAge, AQuietStreamKeepsItsKind) {
  const ClockMap same;
  StreamAge age(10 * kNsPerSecond);
  age.RecordStream(Record(5, kNowNs), same, At(0));
  age.RecordStream(Record(5, kNowNs), same, At(3'600));  // nothing came for an hour
  EXPECT_FALSE(age.is_by_receipt());
}

TEST(StreamAge, OwnTimeStreamUsesReceiptTime) {
  const ClockMap ahead = AheadBy(3'600 * kNsPerSecond);
  StreamAge age(10 * kNsPerSecond);
  StreamRecord record = Record(5, 21 * kNsPerSecond);
  record.clock_domain = ClockDomain::kOwn;
  age.RecordStream(record, ahead, At(0));
  EXPECT_TRUE(age.is_by_receipt());
  EXPECT_EQ(age.OlderThan(10 * kNsPerSecond).before_raw_ns, 0u);
  EXPECT_EQ(age.OldestNs(), 0u);
  age.RecordStream(record, ahead, At(20));
  EXPECT_EQ(age.OldestNs(), 20 * kNsPerSecond);
  EXPECT_EQ(age.OlderThan(10 * kNsPerSecond).before_sequence, 5u);
}

}  // namespace
}  // namespace neurontrace
