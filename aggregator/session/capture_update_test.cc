// SPDX-License-Identifier: Apache-2.0
// What people may write about a capture, and that a change keeps what it does not mention.
#include "aggregator/session/capture_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaptureRecord Tagged() {
  CaptureRecord record;
  record.spec.name = "first";
  record.spec.labels = {{"ticket", "17"}};
  record.tags = {"a", "b"};
  return record;
}

// Returns whether the change made a difference.
bool Apply(const CaptureUpdate& update, CaptureRecord& record) {
  EXPECT_TRUE(update.Check().ok()) << update.Check();
  const auto changed = update.ApplyTo(record);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return changed.ok() && *changed;
}

std::vector<std::string> ManyTags(size_t count) {
  std::vector<std::string> tags;
  for (size_t i = 0; i < count; ++i) tags.push_back("tag" + std::to_string(i));
  return tags;
}

TEST(CaptureUpdate, ChangesWhatItMentionsAndNothingElse) {
  CaptureRecord record = Tagged();
  EXPECT_TRUE(Apply({.starred = true}, record));
  EXPECT_EQ(record.spec.name, "first");
  EXPECT_THAT(record.tags, ElementsAre("a", "b"));
  EXPECT_TRUE(Apply({.name = "Größe 2"}, record));
  EXPECT_TRUE(record.starred);
  EXPECT_TRUE(Apply({.add_tags = {"c", "aa"}, .remove_tags = {"b"}}, record));
  EXPECT_THAT(record.tags, ElementsAre("a", "aa", "c"));
  EXPECT_EQ(record.spec.name, "Größe 2");
  EXPECT_TRUE(Apply({.name = "", .starred = false}, record));
  EXPECT_EQ(record.spec.name, "");
  EXPECT_FALSE(record.starred);
}

TEST(CaptureUpdate, RepeatedChangeMakesNoDifference) {
  CaptureRecord record = Tagged();
  const CaptureUpdate update{
      .name = "second", .starred = true, .add_tags = {"c"}, .remove_tags = {"a"}};
  EXPECT_TRUE(Apply(update, record));
  const CaptureRecord once = record;
  EXPECT_FALSE(Apply(update, record));
  EXPECT_EQ(record, once);
  EXPECT_FALSE(Apply({.remove_tags = {"never there"}}, record));
}

TEST(CaptureUpdate, TagsOfTheStartStay) {
  CaptureRecord record = Tagged();
  const CaptureRecord before = record;
  EXPECT_FALSE(Apply({.add_tags = {"ticket=17"}}, record));
  const CaptureUpdate removal{.add_tags = {"c"}, .remove_tags = {"ticket=17"}};
  const absl::Status refused = removal.ApplyTo(record).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'ticket=17'"));
  EXPECT_EQ(record, before);
  EXPECT_TRUE(Apply({.add_tags = {"ticket=18"}}, record));  // another value is another tag
}

TEST(CaptureUpdate, BoundsTheTagsOfACapture) {
  CaptureRecord record;
  EXPECT_TRUE(Apply({.add_tags = ManyTags(limits::kCaptureTagsMax)}, record));
  const CaptureRecord full = record;
  const absl::Status refused = CaptureUpdate{.add_tags = {"x"}}.ApplyTo(record).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("would have 33 tags; the limit is 32"));
  EXPECT_EQ(record, full);
  EXPECT_FALSE(Apply({.add_tags = {"tag0"}}, record));
  EXPECT_TRUE(Apply({.add_tags = {"x"}, .remove_tags = {"tag0"}}, record));
  // A store of a build with a higher limit.
  record.tags.emplace_back("z");
  EXPECT_TRUE(Apply({.remove_tags = {"x"}}, record));
}

// The error of a change that must not reach a record.
std::string CheckFailure(const CaptureUpdate& update) {
  const absl::Status status = update.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(CaptureUpdate, RefusesTextsThatAreNotFitToBeShown) {
  EXPECT_THAT(CheckFailure({}), HasSubstr("nothing to change"));
  EXPECT_EQ(CheckFailure({.name = "a\x1b[2J"}), "name has a control character");
  EXPECT_EQ(CheckFailure({.name = "a\nb"}), "name has a control character");
  EXPECT_EQ(CheckFailure({.name = "\xff"}),
            "name is not valid UTF-8, or has an invisible character");
  EXPECT_EQ(CheckFailure({.name = "a\u202eb"}),
            "name is not valid UTF-8, or has an invisible character");
  EXPECT_EQ(CheckFailure({.name = std::string(limits::kIdentityStringBytesMax + 1, 'x')}),
            "name has 513 bytes; the limit is 512");
  EXPECT_TRUE(
      CaptureUpdate{.name = std::string(limits::kIdentityStringBytesMax, 'x')}.Check().ok());
  EXPECT_EQ(CheckFailure({.add_tags = {"good", "a\tb"}}), "add_tags[1] has a control character");
  EXPECT_EQ(CheckFailure({.remove_tags = {"\xc3"}}),
            "remove_tags[0] is not valid UTF-8, or has an invisible character");
  EXPECT_EQ(CheckFailure({.add_tags = {""}}), "add_tags[0] is empty");
  EXPECT_THAT(CheckFailure({.add_tags = {" a"}}), HasSubstr("begins or ends with a blank"));
  EXPECT_THAT(CheckFailure({.add_tags = {"a "}}), HasSubstr("begins or ends with a blank"));
  EXPECT_THAT(CheckFailure({.add_tags = {"a,b"}}), HasSubstr("has a comma: 'a,b'"));
  EXPECT_EQ(CheckFailure({.add_tags = {std::string(limits::kCaptureTagBytesMax + 1, 'x')}}),
            "add_tags[0] has 129 bytes; the limit is 128");
  EXPECT_EQ(CheckFailure({.add_tags = ManyTags(limits::kCaptureTagsMax + 1)}),
            "add_tags has 33 entries; the limit is 32");
  EXPECT_EQ(CheckFailure({.add_tags = {"a", "b"}, .remove_tags = {"b"}}),
            "the tag 'b' is both in add_tags and in remove_tags");
}

TEST(CaptureUpdate, ChangesHowLongACaptureIsKept) {
  CaptureRecord record = Tagged();
  EXPECT_TRUE(Apply({.retention_ns = 5}, record));
  EXPECT_EQ(record.spec.retention.duration_ns, 5u);
  EXPECT_FALSE(Apply({.retention_ns = 5}, record));
  EXPECT_TRUE(Apply({.starred = true}, record));
  EXPECT_EQ(record.spec.retention.duration_ns, 5u);
  record.state = CaptureState::kComplete;
  EXPECT_TRUE(Apply({.retention_ns = 0}, record));
  EXPECT_EQ(record.spec.retention.duration_ns, 0u);
}

TEST(CaptureUpdate, AContinuousCaptureKeepsALimit) {
  CaptureRecord record = Tagged();
  record.spec.mode = CaptureMode::kContinuous;
  record.spec.retention.duration_ns = 60;
  EXPECT_TRUE(Apply({.retention_ns = 90}, record));
  const CaptureUpdate unlimited{.name = "second", .retention_ns = 0};
  const absl::Status refused = unlimited.ApplyTo(record).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("needs a maximum age"));
  EXPECT_EQ(record.spec.name, "first");
  record.spec.retention.bytes = 1'000;
  EXPECT_TRUE(Apply(unlimited, record));
  record.state = CaptureState::kIncomplete;
  EXPECT_THAT(std::string(CaptureUpdate{.retention_ns = 7}.ApplyTo(record).status().message()),
              HasSubstr("has ended"));
}

// People trust what a trigger's captures are tagged with.
TEST(CaptureUpdate, RefusesTagsOfTheAggregator) {
  for (const char* const tag : {"trigger=slow", "cause=x", "trigger =slow"}) {
    EXPECT_THAT(CheckFailure({.add_tags = {tag}}), HasSubstr("reserved for the aggregator")) << tag;
  }
  EXPECT_TRUE((CaptureUpdate{.add_tags = {"trigger", "my trigger=x"}}.Check().ok()));
}

TEST(CaptureUpdate, DescribesItselfForTheAuditLog) {
  EXPECT_EQ((CaptureUpdate{.name = "n", .starred = false, .add_tags = {"a"}, .remove_tags = {"b"}}
                 .ToString()),
            "name 'n', not starred, +a, -b");
  EXPECT_EQ(CaptureUpdate{.starred = true}.ToString(), "starred");
  EXPECT_EQ(CaptureUpdate{.retention_ns = 1'500'000'000}.ToString(), "keep for 1.5 s");
  EXPECT_EQ(CaptureUpdate{.retention_ns = 0}.ToString(), "keep");
}

}  // namespace
}  // namespace neurontrace
