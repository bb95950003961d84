// SPDX-License-Identifier: Apache-2.0
// What a caller with jobs, namespaces or users of their own sees of everybody else's: nothing.
#include "aggregator/access/visibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lib/base/clock.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WorkerInfo WorkerOf(const std::string& job, std::vector<KeyValue> facts = {}) {
  return {.identity = {.instance_id = "i-a", .pid = 7}, .job = job, .job_facts = std::move(facts)};
}

TEST(VisibilityTest, AWorkerIsSeenByAnyNameOfItsJob) {
  const Caller alice{.name = "alice", .role = Role::kViewer, .jobs = {"team-a-*", "4711"}};
  EXPECT_TRUE(CanSee(alice, WorkerOf("team-a-1")));
  EXPECT_TRUE(CanSee(alice, WorkerOf("x", {{"slurm", "4711"}})));
  EXPECT_FALSE(CanSee(alice, WorkerOf("x", {{"pod", "4711"}, {"label:job", "team-a-1"}})));
  EXPECT_FALSE(CanSee(alice, WorkerOf("team-b-1")));
  EXPECT_FALSE(CanSee(alice, WorkerOf("")));
  EXPECT_TRUE(CanSee({.name = "root"}, WorkerOf("")));
}

TEST(VisibilityTest, AllLimitsOfARuleHoldTogether) {
  const Caller bob{.name = "bob", .jobs = {"j"}, .namespaces = {"team-b*"}, .uids = {"1000"}};
  EXPECT_TRUE(CanSee(bob, WorkerOf("j", {{"namespace", "team-b2"}, {"uid", "1000"}})));
  EXPECT_FALSE(CanSee(bob, WorkerOf("j", {{"namespace", "team-b2"}, {"uid", "1001"}})));
  EXPECT_FALSE(CanSee(bob, WorkerOf("j", {{"namespace", "team-b2"}})));
  EXPECT_FALSE(CanSee(bob, WorkerOf("k", {{"namespace", "team-b2"}, {"uid", "1000"}})));
}

TEST(VisibilityTest, IdsOfOtherCapturesAreReplacedInTexts) {
  FakeClock clock;
  SystemRandom random;
  const CaptureId mine = CaptureId::Make(clock, random);
  const CaptureId other = CaptureId::Make(clock, random);
  const auto can_see = [&](const CaptureId& id) { return id == mine; };
  EXPECT_EQ(HideCaptures("capture " + other.ToString() + " had the worker", can_see),
            "another capture had the worker");
  EXPECT_EQ(HideCaptures("2 fit: " + mine.ToString() + ", " + other.ToString(), can_see),
            "2 fit: " + mine.ToString() + ", another capture");
  EXPECT_EQ(HideCaptures("nothing to hide: ABCDEFGHIJKLMNOPQRSTUVWXYZ", can_see),
            "nothing to hide: ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  EXPECT_EQ(HideCaptures("", can_see), "");
}

TEST(VisibilityTest, OthersWorkersAndJobsAreNotInTheRecord) {
  CaptureRecord record;
  record.non_participants = {
      {.worker = {.pid = 1}, .reason = NonParticipantReason::kNotSelected, .detail = "job team-b"},
      {.worker = {.pid = 2}, .reason = NonParticipantReason::kNotReported},
      {.worker = {.instance_id = "i-a"}, .reason = NonParticipantReason::kAgentAway}};
  record.warnings = {"a warning"};
  record.end_warnings = {"no worker matched; there are 3 workers of job team-b"};
  const std::string id = "01JD8Z2M6WQJ4V1T0S3R5XK7PA";
  record.workers = {{.detail = "capture " + id + " is already running on this worker"}};
  HideInvisible([](const WorkerIdentity& worker) { return worker.pid == 2; },
                [](const CaptureId&) { return false; }, record);
  EXPECT_EQ(record.workers[0].detail, "another capture is already running on this worker");
  ASSERT_EQ(record.non_participants.size(), 2u);
  EXPECT_EQ(record.non_participants[0].worker.pid, 2u);
  EXPECT_THAT(record.warnings, ElementsAre("a warning"));
  EXPECT_THAT(record.end_warnings, ElementsAre("no worker matched"));
}

TEST(VisibilityTest, InvisibleCaptureIsNotFound) {
  const absl::Status reason = absl::PermissionDeniedError("alice has captures of team-a alone");
  const absl::Status unknown = absl::NotFoundError("no capture has an id that begins with '01JX'");
  const absl::Status hidden = HiddenError(reason, unknown);
  EXPECT_EQ(hidden.message(), reason.message()) << "for the audit log";
  EXPECT_EQ(StatusForCaller(hidden), unknown);
  EXPECT_EQ(StatusForCaller(reason), reason);
  EXPECT_TRUE(StatusForCaller(absl::OkStatus()).ok());
}

TEST(VisibilityTest, CertificateAndTokenIntersectRights) {
  const Caller wide{.name = "wide", .role = Role::kOperator};
  const Caller strict{.name = "strict", .role = Role::kViewer, .jobs = {"team-a-*", "shared"}};
  const Caller other{.name = "other", .role = Role::kOperator, .jobs = {"team-a-1", "b"}};
  for (const auto& [certificate, token] : {std::pair(wide, strict), std::pair(strict, wide)}) {
    const auto both = Intersect(certificate, token);
    ASSERT_TRUE(both.ok()) << both.status();
    EXPECT_EQ(both->role, Role::kViewer);
    EXPECT_EQ(both->jobs, strict.jobs);
    EXPECT_EQ(both->name, token.name);
  }
  EXPECT_THAT(Intersect(strict, other)->jobs, ElementsAre("team-a-1"));
  EXPECT_THAT(Intersect(other, strict)->jobs, ElementsAre("team-a-1"));
  EXPECT_THAT(Intersect(wide, wide)->jobs, IsEmpty());
  const Caller apart{.name = "apart", .role = Role::kViewer, .jobs = {"c*"}};
  EXPECT_TRUE(absl::IsPermissionDenied(Intersect(strict, apart).status()));
  EXPECT_THAT(std::string(Intersect({.name = "a", .role = Role::kAgent}, wide).status().message()),
              HasSubstr("one is an agent's and the other is not"));
}

// The property behind it: a job is open to both exactly where it is open to each.
TEST(VisibilityTest, IntersectedPatternsAdmitWhatBothAdmit) {
  const std::vector<std::string> patterns = {"a", "a*", "ab", "ab*", "b*", "abc", "*"};
  const std::vector<std::string> names = {"a", "ab", "abc", "abcd", "b", "bc", "c"};
  for (const std::string& one : patterns) {
    for (const std::string& other : patterns) {
      const auto both = Intersect({.role = Role::kViewer, .jobs = {one}},
                                  {.role = Role::kViewer, .jobs = {other}});
      for (const std::string& name : names) {
        const bool expected = MatchesPattern(one, name) && MatchesPattern(other, name);
        const bool is_open = both.ok() && CanSee(*both, WorkerOf(name));
        EXPECT_EQ(is_open, expected) << one << " and " << other << " of " << name;
      }
    }
  }
}

}  // namespace
}  // namespace neurontrace
