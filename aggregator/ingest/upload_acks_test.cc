// SPDX-License-Identifier: Apache-2.0
// Which answers an agent gets, and how often.
#include "aggregator/ingest/upload_acks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/store/chunk_store.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

PutResult Stored(uint64_t next) { return {PutOutcome::kStored, next}; }
PutResult Gap(uint64_t next) { return {PutOutcome::kGap, next}; }

TEST(UploadAcks, MergesTheAcknowledgementsOfAStream) {
  UploadAcks acks;
  acks.OnResult(1, 0, Stored(1));
  acks.OnResult(1, 1, Stored(2));
  acks.OnResult(2, 0, Stored(1));
  acks.OnResult(1, 2, Stored(3));
  ASSERT_EQ(acks.pending(), 2u);
  const v1::UploadAck first = acks.Take();
  EXPECT_EQ(first.stream_ref(), 1u);
  EXPECT_EQ(first.next_sequence(), 3u);
  EXPECT_EQ(acks.Take().stream_ref(), 2u);
  EXPECT_EQ(acks.pending(), 0u);
  acks.OnResult(1, 3, Stored(4));
  EXPECT_EQ(acks.Take().next_sequence(), 4u);
}

TEST(UploadAcks, ReportsGapOnceUntilStreamContinues) {
  UploadAcks acks;
  acks.OnResult(1, 3, Gap(1));
  acks.OnResult(1, 4, Gap(1));
  ASSERT_EQ(acks.pending(), 1u);
  const v1::UploadAck gap = acks.Take();
  EXPECT_EQ(gap.refusal(), v1::REFUSAL_CODE_GAP);
  EXPECT_EQ(gap.next_sequence(), 1u);
  EXPECT_EQ(gap.refused_sequence(), 3u);
  acks.OnResult(1, 1, Stored(2));
  EXPECT_EQ(acks.Take().next_sequence(), 2u);
  acks.OnResult(1, 4, Gap(2));
  EXPECT_EQ(acks.Take().refusal(), v1::REFUSAL_CODE_GAP);
}

// One that was cut inside a character does not parse: the agent would lose the call.
TEST(UploadAcks, TextIsTruncatedBetweenCharactersAndSafeForLogs) {
  UploadAcks acks;
  std::string words = "\xff\n";
  while (words.size() < 2 * limits::kDetailBytesMax) words += "\u20ac";
  acks.OnResult(1, 0, ResourceExhausted("{}", words));
  acks.OnRefused(1, 0, v1::REFUSAL_CODE_MALFORMED, words.substr(1));
  while (acks.pending() > 0) {
    const v1::UploadAck ack = acks.Take();
    EXPECT_EQ(ack.message(), CleanText(ack.message(), limits::kDetailBytesMax));
    EXPECT_GT(ack.message().size(), limits::kDetailBytesMax - 3);
    v1::UploadAck again;
    EXPECT_TRUE(again.ParseFromString(ack.SerializeAsString()));
  }
}

TEST(UploadAcks, AsksAgainAfterAFailedWriteOnce) {
  UploadAcks acks;
  acks.OnResult(1, 0, Stored(1));
  acks.Take();
  acks.OnResult(1, 1, ResourceExhausted("the disk is full"));
  acks.OnResult(1, 2, ResourceExhausted("the disk is full"));
  acks.OnResult(1, 3, Gap(1));  // it was under way
  ASSERT_EQ(acks.pending(), 1u);
  const v1::UploadAck busy = acks.Take();
  EXPECT_EQ(busy.refusal(), v1::REFUSAL_CODE_BUSY);
  EXPECT_EQ(busy.next_sequence(), 1u);
  EXPECT_GT(busy.retry_delay_ms(), 0u);
  EXPECT_EQ(busy.message(), "the disk is full");
  // The agent has sent it again, and there is no more room than before.
  acks.OnResult(1, 1, ResourceExhausted("the disk is full"));
  acks.OnResult(1, 2, ResourceExhausted("the disk is full"));
  ASSERT_EQ(acks.pending(), 1u);
  EXPECT_EQ(acks.Take().refused_sequence(), 1u);
}

TEST(UploadAcks, ReportsGapAfterRefusal) {
  UploadAcks acks;
  acks.OnResult(1, 0, Stored(1));
  acks.Take();
  acks.OnRefused(1, std::nullopt, v1::REFUSAL_CODE_MALFORMED, "no header");
  acks.OnResult(1, 2, Gap(1));
  EXPECT_EQ(acks.Take().refused_sequence(), 1u);  // the one that was expected
  EXPECT_EQ(acks.Take().refusal(), v1::REFUSAL_CODE_GAP);
}

TEST(UploadAcks, NamesThePermanentReasons) {
  UploadAcks acks;
  acks.OnResult(1, 0, PutResult{PutOutcome::kUnknownCapture, 0});
  EXPECT_EQ(acks.Take().refusal(), v1::REFUSAL_CODE_UNKNOWN_CAPTURE);
  acks.OnResult(2, 0, PutResult{PutOutcome::kTooManyStreams, 0});
  EXPECT_EQ(acks.Take().refusal(), v1::REFUSAL_CODE_LIMIT);
  acks.OnResult(3, 5, PutResult{PutOutcome::kStreamEnded, 5});
  EXPECT_EQ(acks.Take().refusal(), v1::REFUSAL_CODE_MALFORMED);
}

}  // namespace
}  // namespace neurontrace
