// SPDX-License-Identifier: Apache-2.0
// Goal: each capture that ends and matches is exported once, through restarts, failures and
// deletions; nothing older than its rule is.
#include "aggregator/deliver/standing_queue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/fake_file_system.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

class StandingQueueTest : public ::testing::Test {
 protected:
  StandingQueueTest() { EXPECT_TRUE(files_.MakeDirectory("/store").ok()); }

  std::unique_ptr<StandingQueue> Open(
      const std::vector<std::string>& texts = {
          R"({name = "all", to = "/fsx", formats = ["perfetto", "json"]})"}) {
    std::vector<StandingRule> rules;
    for (const std::string& text : texts) rules.push_back(*ParseStandingRule(text));
    problem_.clear();
    return std::make_unique<StandingQueue>(StandingQueue::Deps{files_, clock_, random_},
                                           "/store/standing", rules, problem_);
  }
  CaptureRecord Ended(char which, const std::string& job = "") {
    CaptureRecord record;
    record.id = *CaptureId::Parse(std::string(25, '0') + which);
    record.spec.selection.job = job;
    record.spec.name = "nightly-7";
    record.state = CaptureState::kComplete;
    record.ended_realtime_ns = clock_.RealtimeNs();
    record.workers.resize(1);
    return record;
  }

  FakeFileSystem files_{1};
  FakeClock clock_;
  SeededRandom random_{1};
  std::string problem_;
};

TEST_F(StandingQueueTest, ACaptureIsDueWhenItsClocksAreFinalAndDoneOnce) {
  const auto queue = Open();
  const CaptureRecord record = Ended('1');
  queue->Offer(record, clock_.RealtimeNs() + 30 * kNsPerSecond);
  EXPECT_FALSE(queue->Next());
  clock_.AdvanceNs(30 * kNsPerSecond);
  const auto task = queue->Next();
  ASSERT_TRUE(task);
  EXPECT_EQ(task->capture, record.id);
  EXPECT_EQ(task->rule->formats, (std::vector<std::string>{"perfetto", "json"}));
  queue->Finish(*task, absl::OkStatus());
  queue->Offer(record, 0);
  EXPECT_FALSE(queue->Next());
  EXPECT_EQ(queue->counts().done, 1u);
  EXPECT_EQ(queue->counts().pending, 0u);
}

TEST_F(StandingQueueTest, ContinuesAfterRestart) {
  CaptureRecord done = Ended('1');
  CaptureRecord pending = Ended('2');
  {
    const auto queue = Open();
    queue->Offer(done, 0);
    queue->Finish(*queue->Next(), absl::OkStatus());
    queue->Offer(pending, 0);
    ASSERT_TRUE(queue->Save().ok());
  }
  clock_.AdvanceNs(kNsPerSecond);
  const auto queue = Open();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(queue->counts().pending, 1u);
  // This one ended right before a crash, and nothing of it was saved.
  queue->Offer(Ended('3'), 0);
  queue->Offer(done, 0);
  EXPECT_EQ(queue->counts().pending, 2u);
  EXPECT_EQ(queue->Next()->capture, pending.id);
}

TEST_F(StandingQueueTest, IgnoresCapturesEndedBeforeRule) {
  const CaptureRecord old = Ended('1');
  clock_.AdvanceNs(1);
  const auto queue = Open();
  queue->Offer(old, 0);
  EXPECT_FALSE(queue->Next());
}

TEST_F(StandingQueueTest, AFailureIsTriedAgainLaterAndAtLastGivenUp) {
  const auto queue = Open();
  queue->Offer(Ended('1'), 0);
  uint64_t waited_ns = 0;
  for (uint32_t i = 1; i < StandingQueue::kTriesMax; ++i) {
    queue->Finish(*queue->Next(), absl::UnavailableError("the volume is away"));
    EXPECT_FALSE(queue->Next());
    EXPECT_EQ(queue->counts().pending, 1u);
    while (!queue->Next()) {
      clock_.AdvanceNs(kNsPerSecond);
      waited_ns += kNsPerSecond;
    }
  }
  EXPECT_GT(waited_ns, 3600 * kNsPerSecond);
  queue->Finish(*queue->Next(), absl::UnavailableError("the volume is away"));
  EXPECT_FALSE(queue->Next());
  EXPECT_EQ(queue->counts().failed, 1u);
  EXPECT_EQ(queue->counts().retried, StandingQueue::kTriesMax - 1);
}

TEST_F(StandingQueueTest, BeyondTheLimitTheNewestIsRefused) {
  const auto queue = Open();
  CaptureRecord record = Ended('1');
  for (size_t i = 0; i <= StandingQueue::kPendingMax; ++i) {
    std::string id = record.id.ToString();
    const std::string digits = std::to_string(i);
    id.replace(id.size() - digits.size(), digits.size(), digits);
    record.id = *CaptureId::Parse(id);
    queue->Offer(record, 0);
  }
  EXPECT_EQ(queue->counts().pending, StandingQueue::kPendingMax);
  EXPECT_EQ(queue->counts().failed, 1u);
}

TEST_F(StandingQueueTest, DeletedCaptureIsNeitherDueNorFailed) {
  const auto queue = Open();
  const CaptureRecord record = Ended('1');
  queue->Offer(record, 0);
  queue->Forget(record.id);
  EXPECT_FALSE(queue->Next());
  EXPECT_EQ(queue->counts().failed, 0u);
  EXPECT_EQ(queue->counts().forgone, 1u);
  EXPECT_EQ(queue->counts().pending, 0u);
}

TEST_F(StandingQueueTest, RetriesFilesNotFoundByVolume) {
  const auto queue = Open();
  queue->Offer(Ended('1'), 0);
  queue->Finish(*queue->Next(), absl::NotFoundError("the bucket is not there"));
  EXPECT_EQ(queue->counts().failed, 0u);
  clock_.AdvanceNs(StandingQueue::kLongestPauseNs);
  EXPECT_TRUE(queue->Next());
}

TEST_F(StandingQueueTest, CapturesThatAreGoneAreForgottenWhileItRuns) {
  const auto queue = Open();
  const CaptureRecord there = Ended('1');
  const CaptureRecord gone = Ended('2');
  size_t asked = 0;
  const auto forget = [&] {
    queue->ForgetDeleted([&](const CaptureId& id) {
      ++asked;
      return id == gone.id;
    });
  };
  forget();
  for (const CaptureRecord& record : {there, gone}) {
    queue->Offer(record, 0);
    queue->Finish(*queue->Next(), absl::OkStatus());
  }
  forget();
  EXPECT_EQ(asked, 0u) << "not before the pause has passed";
  clock_.AdvanceNs(StandingQueue::kForgetPauseNs);
  forget();
  EXPECT_EQ(asked, 2u);
  clock_.AdvanceNs(StandingQueue::kForgetPauseNs);
  forget();
  EXPECT_EQ(asked, 3u) << "only for the remaining entry";
  queue->Offer(there, 0);
  EXPECT_FALSE(queue->Next()) << "the entry is done";
}

TEST_F(StandingQueueTest, KeepsNoMoreThanItsLimit) {
  const auto queue = Open();
  CaptureRecord record = Ended('1');
  for (size_t i = 0; i < StandingQueue::kEntriesMax; ++i) {
    record.id = *CaptureId::Parse(fmt::format("{:026}", i));
    queue->Offer(record, 0);
  }
  const uint64_t failed = queue->counts().failed;
  queue->Offer(record, 0);
  EXPECT_EQ(queue->counts().failed, failed) << "it is known";
  record.id = *CaptureId::Parse(fmt::format("{:026}", StandingQueue::kEntriesMax));
  for (uint64_t i = 1; i <= 2; ++i) {
    queue->Offer(record, 0);
    EXPECT_EQ(queue->counts().failed, failed + i) << "each offer to a full queue fails";
  }
}

TEST_F(StandingQueueTest, UnreadableStateIsEmptyAndReported) {
  {
    const auto file = files_.Create("/store/standing");
    ASSERT_TRUE((*file)->Append("neurontrace standing exports 1\npending all ../../x 1 2\n").ok());
  }
  const auto queue = Open();
  EXPECT_THAT(problem_, ::testing::HasSubstr("pending all ../../x"));
  EXPECT_FALSE(queue->Next());
  EXPECT_TRUE(queue->Save().ok());
  Open();
  EXPECT_EQ(problem_, "");
}

TEST_F(StandingQueueTest, RulesSelectByJobNameAndCompleteness) {
  CaptureRecord record = Ended('1', "llama");
  const auto matches = [&](const std::string& words) {
    return Matches(*ParseStandingRule("{name = \"a\", to = \"/x\"" + words + "}"), record);
  };
  EXPECT_TRUE(matches(""));
  EXPECT_TRUE(matches(", job = \"llama\""));
  EXPECT_FALSE(matches(", job = \"gpt\""));
  EXPECT_TRUE(matches(", capture = \"nightly*\""));
  EXPECT_FALSE(matches(", capture = \"nightly\""));
  record.state = CaptureState::kIncomplete;
  EXPECT_TRUE(matches(""));
  EXPECT_FALSE(matches(", incomplete = false"));
  record.state = CaptureState::kRecording;
  EXPECT_FALSE(matches(""));
  for (const char* bad :
       {"", "{}", R"({name = "a"})", R"({to = "/x"})", R"({name = "a", to = "x"})",
        R"({name = "a/b", to = "/x"})", R"({name = "a", to = "/x", y})",
        R"({name = "a", to = "/x", color = "red"})",
        R"({name = "a", to = "/x", incomplete = "no"})", "{name = \"a\", to = \"/x\"}\ny = 1"}) {
    EXPECT_FALSE(ParseStandingRule(bad).ok()) << bad;
  }
  EXPECT_THAT(
      std::string(
          ParseStandingRule("name=a to=/x formats=json,csv incomplete=no").status().message()),
      ::testing::HasSubstr(
          R"({name = "a", to = "/x", formats = ["json", "csv"], incomplete = false})"));
  // A rule is shown on one line, and no more of it than helps.
  const auto lines = ParseStandingRule(std::string(5'000, '\n') + "x\x1b[2J").status();
  EXPECT_LT(lines.message().size(), 3'000u);
  EXPECT_EQ(lines.message().find_first_of("\n\x1b"), absl::string_view::npos) << lines;
}

}  // namespace
}  // namespace neurontrace
