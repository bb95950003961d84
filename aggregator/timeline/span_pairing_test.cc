// SPDX-License-Identifier: Apache-2.0
// Goal: a stop closes the latest start of its type and id, in time that no ids can make grow.
// Method: small chunks by hand; ids made for a table without a seed.
#include "aggregator/timeline/span_pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

struct PairedEvent {
  std::string type;
  Phase phase;
  uint64_t tracking_id;
};

class SpanPairingTest : public testing::Test {
 protected:
  void Make(const std::vector<PairedEvent>& events) {
    EventChunkBuilder builder;
    uint64_t time_ns = 100;
    for (const PairedEvent& event : events) {
      const auto shape = builder.InternShape(
          {.event_type = event.type,
           .phase = event.phase,
           .present = FieldBit(Field::kTimestamp) | FieldBit(Field::kTrackingId)});
      ASSERT_TRUE(shape.ok()) << shape.status();
      ASSERT_TRUE(
          builder.Append(*shape, {.timestamp_ns = time_ns++, .tracking_id = event.tracking_id}, {})
              .ok());
    }
    bytes_ = builder.Finish().bytes;
    ASSERT_TRUE(chunk_.Decode(bytes_).ok());
  }

  std::string bytes_;
  DecodedChunk chunk_;
  SpanPairing pairing_;
};

TEST_F(SpanPairingTest, AStopClosesTheLatestStartOfItsTypeAndId) {
  constexpr uint16_t kNone = SpanPairing::kNone;
  Make({{"a", Phase::kStop, 1},
        {"a", Phase::kStart, 1},
        {"b", Phase::kStart, 1},
        {"a", Phase::kStart, 1},
        {"a", Phase::kInstant, 1},
        {"a", Phase::kStop, 1},
        {"a", Phase::kStop, 2},
        {"a", Phase::kStop, 1},
        {"b", Phase::kStop, 1}});
  pairing_.Pair(chunk_);
  EXPECT_THAT(pairing_.partner(), testing::ElementsAre(kNone, 7, 8, 5, kNone, 3, kNone, 1, 2));
}

// Their products with the usual odd number have the same upper bits. A table that walks past each
// of them takes minutes for as many chunks.
TEST_F(SpanPairingTest, IdsThatAreMadeToMeetCostNoMore) {
  constexpr uint64_t kExtreme = 0x9e3779b97f4a7c15u;
  uint64_t inverse = kExtreme;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kExtreme * inverse;
  ASSERT_EQ(kExtreme * inverse, 1u);
  std::vector<PairedEvent> events;
  for (uint64_t i = 0; i < limits::kChunkEventsMax; ++i) {
    events.push_back({"a", Phase::kStart, (i + 1) * inverse});
  }
  Make(events);
  for (int i = 0; i < 4'000; ++i) pairing_.Pair(chunk_);
  EXPECT_EQ(pairing_.partner()[7], SpanPairing::kNone);
}

}  // namespace
}  // namespace neurontrace
