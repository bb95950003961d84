// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/range_pairing.h"

#include <gtest/gtest.h>

#include "lib/trace/annotation_limits.h"

namespace neurontrace {
namespace {

ReadAnnotation Make(AnnotationType type, uint16_t level, uint64_t range_id = 0, uint32_t thread = 1,
                    uint32_t recording = 1) {
  ReadAnnotation read;
  read.record.type = static_cast<uint8_t>(type);
  read.record.level = level;
  read.record.range_id = range_id;
  read.record.thread_id = thread;
  read.record.recording = recording;
  return read;
}
constexpr auto kPush = AnnotationType::kPush;
constexpr auto kPop = AnnotationType::kPop;

TEST(RangePairingTest, PushesAndPopsNest) {
  RangePairing pairing;
  const uint64_t outer = pairing.Begin(Make(kPush, 0)).number;
  const uint64_t inner = pairing.Begin(Make(kPush, 1)).number;
  const uint64_t other = pairing.Begin(Make(kPush, 0, 0, 2)).number;
  EXPECT_EQ(pairing.End(Make(kPop, 1))->number, inner);
  EXPECT_EQ(pairing.End(Make(kPop, 0, 0, 2))->number, other);
  EXPECT_EQ(pairing.End(Make(kPop, 0))->number, outer);
  EXPECT_EQ(pairing.open(), 0u);
}

TEST(RangePairingTest, ADroppedRecordCostsItsOwnRange) {
  RangePairing pairing;
  const uint64_t outer = pairing.Begin(Make(kPush, 0)).number;
  pairing.Begin(Make(kPush, 1));
  // The pop of level 1 was dropped, and the next push of that level is another range.
  const uint64_t second = pairing.Begin(Make(kPush, 1)).number;
  EXPECT_EQ(pairing.End(Make(kPop, 1))->number, second);
  // The push of level 1 was dropped.
  EXPECT_FALSE(pairing.End(Make(kPop, 1)));
  EXPECT_EQ(pairing.End(Make(kPop, 0))->number, outer);
  EXPECT_FALSE(pairing.End(Make(kPop, kAnnotationNoLevel)));
  EXPECT_EQ(pairing.open(), 0u);
}

TEST(RangePairingTest, StartsAndEndsBelongTogetherById) {
  RangePairing pairing;
  ReadAnnotation start = Make(AnnotationType::kStart, 0, 7);
  start.category = "io";
  const uint64_t number = pairing.Begin(start).number;
  const auto range = pairing.End(Make(AnnotationType::kEnd, 0, 7, 2));
  ASSERT_TRUE(range);
  EXPECT_EQ(range->number, number);
  EXPECT_EQ(range->event_type, "io");
  EXPECT_FALSE(pairing.End(Make(AnnotationType::kEnd, 0, 7)));
}

TEST(RangePairingTest, ANewRecordingForgetsOpenRanges) {
  RangePairing pairing;
  pairing.Begin(Make(kPush, 0));
  pairing.Begin(Make(AnnotationType::kStart, 0, 7));
  EXPECT_FALSE(pairing.End(Make(kPop, 0, 0, 1, 2)));
  EXPECT_FALSE(pairing.End(Make(AnnotationType::kEnd, 0, 7, 1, 2)));
  EXPECT_EQ(pairing.open(), 0u);
}

TEST(RangePairingTest, OpenRangesAreBounded) {
  RangePairing pairing;
  for (uint64_t i = 0; i < limits::kAnnotationRangesOpenMax + 5; ++i) {
    pairing.Begin(Make(AnnotationType::kStart, 0, i + 1));
  }
  EXPECT_EQ(pairing.open(), limits::kAnnotationRangesOpenMax);
  EXPECT_FALSE(pairing.End(Make(AnnotationType::kEnd, 0, limits::kAnnotationRangesOpenMax + 1)));
  EXPECT_TRUE(pairing.End(Make(AnnotationType::kEnd, 0, 1)));
}

}  // namespace
}  // namespace neurontrace
