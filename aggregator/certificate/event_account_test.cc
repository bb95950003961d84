// SPDX-License-Identifier: Apache-2.0
// How many events there were, are and are not, of one stream and of several.
#include "aggregator/certificate/event_account.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(EventAccount, Balances) {
  struct Case {
    const char* name;
    uint64_t captured;
    uint64_t stored;
    std::vector<Loss> losses;
    uint64_t expected;
    uint64_t lost;
    Conservation conserved;
  };
  const Loss ring{
      .place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = 7};
  const Loss decode{.place = LossPlace::kDecode, .reason = LossReason::kLimit, .events = 2};
  const Loss spool{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 5};
  const Loss tap_unknown{.place = LossPlace::kTapBuffer, .events_unknown = true};
  const Loss way_unknown{.place = LossPlace::kStore, .events_unknown = true};
  const Loss words{.place = LossPlace::kTapBuffer, .detail = "counted elsewhere"};
  const Case cases[] = {
      {"whole", 10, 10, {}, 10, 0, Conservation::kYes},
      {"nothing", 0, 0, {}, 0, 0, Conservation::kYes},
      {"lost before it was captured", 10, 10, {ring, decode}, 19, 9, Conservation::kYes},
      {"lost on the way", 15, 10, {spool}, 15, 5, Conservation::kYes},
      {"lost at both", 15, 10, {ring, spool}, 22, 12, Conservation::kYes},
      {"unknown before", 10, 10, {tap_unknown}, 10, 0, Conservation::kUndetermined},
      {"unknown on the way", 15, 10, {way_unknown}, 15, 0, Conservation::kUndetermined},
      {"fewer than accounted for", 15, 11, {spool}, 15, 5, Conservation::kNo},
      {"more than accounted for", 15, 9, {spool}, 15, 5, Conservation::kNo},
      {"unknown before explains nothing", 15, 10, {tap_unknown}, 15, 0, Conservation::kNo},
      {"words without events are no loss", 10, 10, {words}, 10, 0, Conservation::kYes},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    StreamRecord stream;
    stream.captured = test.captured;
    stream.events = test.stored;
    stream.losses = test.losses;
    const EventAccount account = AccountOf(stream);
    EXPECT_EQ(account.expected, test.expected);
    EXPECT_EQ(account.captured, test.captured);
    EXPECT_EQ(account.stored, test.stored);
    EXPECT_EQ(account.lost, test.lost);
    EXPECT_EQ(account.conserved, test.conserved);
    if (!account.lost_unknown && account.conserved == Conservation::kYes) {
      EXPECT_EQ(account.expected, account.stored + account.lost);
    }
  }
}

TEST(EventAccount, SumsByPlaceAndReasonAndKeepsTheWorst) {
  EventAccount sum;
  EventAccount one{.expected = 12, .captured = 12, .stored = 10, .lost = 2};
  one.losses = {{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 2}};
  sum.Add(one);
  sum.Add(one);
  EXPECT_EQ(sum.expected, 24u);
  EXPECT_EQ(sum.lost, 4u);
  ASSERT_EQ(sum.losses.size(), 1u);
  EXPECT_EQ(sum.losses[0].events, 4u);
  EXPECT_EQ(sum.conserved, Conservation::kYes);
  one.conserved = Conservation::kUndetermined;
  sum.Add(one);
  EXPECT_EQ(sum.conserved, Conservation::kUndetermined);
  one.conserved = Conservation::kNo;
  sum.Add(one);
  one.conserved = Conservation::kUndetermined;
  sum.Add(one);
  EXPECT_EQ(sum.conserved, Conservation::kNo);
}

}  // namespace
}  // namespace neurontrace
