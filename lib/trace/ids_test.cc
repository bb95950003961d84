// SPDX-License-Identifier: Apache-2.0
// Capture ids survive their two forms, sort by time, and refuse what is not one.
#include "lib/trace/ids.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(CaptureId, SurvivesTextAndBytes) {
  FakeClock clock;
  SeededRandom random(7);
  const CaptureId id = CaptureId::Make(clock, random);
  EXPECT_EQ(*CaptureId::Parse(id.ToString()), id);
  EXPECT_EQ(*CaptureId::FromBytes(id.bytes()), id);
  EXPECT_FALSE(id.empty());
}

TEST(CaptureId, SortsByTimeInBothForms) {
  FakeClock clock;
  SeededRandom random(7);
  const CaptureId first = CaptureId::Make(clock, random);
  clock.AdvanceNs(1'000'000);
  const CaptureId second = CaptureId::Make(clock, random);
  EXPECT_LT(first, second);
  EXPECT_LT(first.ToString(), second.ToString());
}

TEST(CaptureId, ReadsTheExampleOfTheSpecification) {
  const auto id = CaptureId::Parse("01arz3ndektsv4rrffq69g5fav");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToString(), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
}

TEST(CaptureId, RejectsInvalidIds) {
  for (const char* text : {"", "01ARZ3NDEKTSV4RRFFQ69G5FA", "81ARZ3NDEKTSV4RRFFQ69G5FAV",
                           "01ARZ3NDEKTSV4RRFFQ69G5FAU"}) {
    EXPECT_EQ(CaptureId::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(CaptureId::FromBytes("short").status().message(), "a capture id has 16 bytes, not 5");
}

// Warnings name workers by it, and a message with half a character is refused as a whole.
TEST(WorkerIdentityTest, AContainerIsNamedByWholeCharacters) {
  const WorkerIdentity worker{
      .instance_id = "i-1", .pid = 7, .container_id = "01234567890\xc3\xa9"};
  EXPECT_EQ(ToString(worker), "i-1 pid 7 container 01234567890");
}

}  // namespace
}  // namespace neurontrace
