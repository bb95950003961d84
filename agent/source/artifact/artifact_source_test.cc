// SPDX-License-Identifier: Apache-2.0
// Which files a capture takes, when, and when its end is reached, with a sink that finds and
// answers as the test decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "agent/source/artifact/artifact_source.h"
#include "lib/base/fake_task_runner.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fate = ArtifactSink::Fate;

constexpr uint64_t kMs = 1'000'000;

class FakeSink final : public ArtifactSink {
 public:
  explicit FakeSink(TaskRunner& runner) : runner_(runner) {}
  void Find(const std::vector<std::string>&, const std::string&, Found done) override {
    runner_.PostTask([this, done] { done(files, false); });
  }
  void Forgo(const CaptureId&, const FoundArtifact& artifact, const std::string& why,
             Done done) override {
    forgone.push_back(artifact.place.path() + ": " + why);
    runner_.PostTask([done, fate = forgo_fate] { done({fate, ""}); });
  }
  void Submit(const CaptureId&, const FoundArtifact& artifact, Done done) override {
    submitted.push_back(artifact.place.path());
    if (answers) {
      runner_.PostTask([done, fate = fate, why = why] { done({fate, why}); });
    } else {
      waiting.push_back(done);
    }
  }

  std::vector<FoundArtifact> files;
  std::vector<std::string> submitted;
  std::vector<std::string> forgone;
  std::vector<Done> waiting;
  Fate fate = Fate::kKept;
  std::string why;
  Fate forgo_fate = Fate::kKept;
  bool answers = true;

 private:
  TaskRunner& runner_;
};

// The same workers have a part in every capture.
class FakeParticipants final : public CaptureParticipants {
 public:
  bool Records(const CaptureId&) const override { return !workers.empty(); }
  std::vector<WorkerIdentity> WorkersOf(const CaptureId&) const override { return workers; }

  std::vector<WorkerIdentity> workers;
};

class ArtifactSourceTest : public ::testing::Test {
 protected:
  ArtifactSourceTest() : capture_(CaptureId::Make(clock_, random_)) {
    source_ = std::make_unique<ArtifactSource>(
        ArtifactSource::Options{{"/out"}, "i-1"}, clock_, runner_, sink_, metrics_, participants_,
        [](uint64_t start_time_ticks) { return start_time_ticks * kMs; });
  }
  // A file that changed so long after the capture began.
  FoundArtifact File(const std::string& directory, int64_t after_ms, uint64_t bytes = 1) {
    FoundArtifact file{"/out", MakeArtifactPlace(directory, "", "ntrace.pb").value(), {}};
    file.state = {.bytes = bytes,
                  .modified_ns = static_cast<uint64_t>(static_cast<int64_t>(began_ns_) +
                                                       after_ms * static_cast<int64_t>(kMs))};
    return file;
  }
  // A worker that started so long after the capture began.
  void AddWorker(uint32_t pid, int64_t after_ms, const std::string& container = "") {
    const auto ticks = static_cast<uint64_t>(static_cast<int64_t>(began_ns_ / kMs) + after_ms);
    participants_.workers.push_back({.instance_id = "i-1",
                                     .boot_id = "boot",
                                     .pid = pid,
                                     .start_time_ticks = ticks,
                                     .container_id = container});
  }
  void Start() { source_->ApplyOrder(SourceOrder::Start(capture_, spec_, {})); }
  void Stop() { source_->Stop(capture_, Source::kStopNow); }
  void Pass(uint64_t ms) { runner_.AdvanceNs(ms * kMs); }
  // Of what is submitted; that may submit the next one.
  void AnswerLast(Fate fate) {
    const ArtifactSink::Done done = sink_.waiting.back();
    done({fate, ""});
  }
  bool Finished() const { return source_->IsFinished(capture_); }

  FakeClock clock_;
  const uint64_t began_ns_ = clock_.RealtimeNs();
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{4};
  FakeSink sink_{runner_};
  AgentSourceMetrics metrics_;
  CaptureId capture_;
  CaptureSpec spec_;
  FakeParticipants participants_;
  std::unique_ptr<ArtifactSource> source_;
};

TEST_F(ArtifactSourceTest, TakesNewFilesOfItsWorkersOnceSettled) {
  AddWorker(7, -60'000);
  sink_.files = {File("i-1_pid_7", -5'000), File("i-1_pid_8", -5'000), File("i-1_pid_9", 10)};
  Start();
  Pass(0);
  EXPECT_THAT(sink_.submitted, IsEmpty()) << "seen once";
  Pass(1000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_7/ntrace.pb", "i-1_pid_9/ntrace.pb"));
  Pass(5000);
  EXPECT_THAT(sink_.submitted, SizeIs(2)) << "each once";
  EXPECT_EQ(metrics_.artifacts_kept, 2u);
}

TEST_F(ArtifactSourceTest, FileThatGrowsIsTakenWhenItRestsAndAgainWhenItHasChanged) {
  sink_.files = {File("i-1_pid_9", 10, 1)};
  Start();
  Pass(0);
  sink_.files = {File("i-1_pid_9", 20, 2)};
  Pass(1000);
  EXPECT_THAT(sink_.submitted, IsEmpty());
  Pass(1000);
  EXPECT_THAT(sink_.submitted, SizeIs(1));
  sink_.files = {File("i-1_pid_9", 30, 3)};
  Pass(2000);
  EXPECT_THAT(sink_.submitted, SizeIs(2));
}

TEST_F(ArtifactSourceTest, FileThatPausesAtTheEndIsNotTakenBeforeItHasRested) {
  sink_.files = {File("i-1_pid_9", 10, 1)};
  Start();
  Pass(0);
  Stop();  // which looks at once
  Pass(500);
  EXPECT_THAT(sink_.submitted, IsEmpty()) << "three looks have found it the same, in half a second";
  sink_.files = {File("i-1_pid_9", 600, 2)};
  Pass(limits::kArtifactRestNs / kMs);
  EXPECT_THAT(sink_.submitted, IsEmpty()) << "it has gone on";
  EXPECT_FALSE(Finished());
  Pass(500);
  EXPECT_THAT(sink_.submitted, SizeIs(1));
  EXPECT_TRUE(Finished());
}

TEST_F(ArtifactSourceTest, ReplacedFileOfSameSizeMustSettleAgain) {
  FoundArtifact file = File("i-1_pid_9", 10, 1);
  sink_.files = {file};
  Start();
  Pass(500);
  file.state.inode += 1;  // renamed over it
  sink_.files = {file};
  Pass(1000);
  EXPECT_THAT(sink_.submitted, IsEmpty());
  Pass(1000);
  EXPECT_THAT(sink_.submitted, SizeIs(1));
}

TEST_F(ArtifactSourceTest, EndsAfterAllFilesAreUploaded) {
  Start();
  Pass(100);
  sink_.files = {File("i-1_pid_9", 10)};
  sink_.answers = false;
  Stop();
  EXPECT_FALSE(Finished());
  Pass(2000);
  ASSERT_THAT(sink_.waiting, SizeIs(1));
  EXPECT_FALSE(Finished());
  sink_.waiting[0]({Fate::kKept, ""});
  EXPECT_TRUE(Finished());
}

TEST_F(ArtifactSourceTest, EndsAfterTwoPollsWithoutFiles) {
  Start();
  Pass(100);
  Stop();
  Pass(1000);
  EXPECT_TRUE(Finished());
}

TEST_F(ArtifactSourceTest, RetriesUnavailableAggregatorUntilTimeout) {
  sink_.files = {File("i-1_pid_9", 10)};
  sink_.fate = Fate::kAway;
  Start();
  Pass(5000);
  EXPECT_GE(sink_.submitted.size(), 3u);
  Stop();
  Pass(limits::kArtifactPatienceNs / kMs - 2000);
  EXPECT_FALSE(Finished());
  sink_.forgo_fate = Fate::kAway;
  Pass(60'000);
  EXPECT_FALSE(Finished()) << "nobody knows yet that it will not come";
  sink_.forgo_fate = Fate::kKept;
  Pass(2000);
  EXPECT_TRUE(Finished());
  EXPECT_EQ(metrics_.artifacts_given_up, 1u);
  EXPECT_EQ(sink_.forgone.back(), "i-1_pid_9/ntrace.pb: it was not transferred in time");
}

TEST_F(ArtifactSourceTest, WaitsBeyondTimeoutOnlyForUploadInProgress) {
  for (uint32_t pid = 100; pid < 200; ++pid) {
    sink_.files.push_back(File("i-1_pid_" + std::to_string(pid), 10));
  }
  sink_.answers = false;
  Start();
  Pass(2000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_100/ntrace.pb"));
  AnswerLast(Fate::kKept);
  EXPECT_THAT(sink_.submitted, SizeIs(2)) << "the next one at once";
  Stop();
  Pass(2 * limits::kArtifactPatienceNs / kMs);
  EXPECT_FALSE(Finished()) << "what moves is waited for";
  AnswerLast(Fate::kKept);
  Pass(0);
  EXPECT_THAT(sink_.submitted, SizeIs(2));
  EXPECT_THAT(sink_.forgone, SizeIs(98)) << "and what did not move is told to be missing";
  EXPECT_TRUE(Finished());
  EXPECT_EQ(metrics_.artifacts_kept, 2u);
  EXPECT_EQ(metrics_.artifacts_given_up, 98u);
}

TEST_F(ArtifactSourceTest, ForgottenCaptureDoesNotBlockOtherFiles) {
  sink_.files = {File("i-1_pid_9", 10)};
  sink_.answers = false;
  Start();
  Pass(2000);
  const CaptureId second = CaptureId::Make(clock_, random_);
  source_->ApplyOrder(SourceOrder::Start(second, spec_, {}));
  sink_.files.push_back(File("i-1_pid_10", 5000));
  Pass(3000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_9/ntrace.pb"));
  source_->Forget(capture_);
  sink_.answers = true;
  AnswerLast(Fate::kKept);
  Pass(1000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_9/ntrace.pb", "i-1_pid_10/ntrace.pb"));
  EXPECT_EQ(metrics_.artifacts_kept, 1u);
}

TEST_F(ArtifactSourceTest, ClockOfItsHostThatIsBehindTheAggregatorsLosesNoFile) {
  const FakeClock ahead(clock_.RealtimeNs() + 60'000 * kMs);
  const CaptureId capture = CaptureId::Make(ahead, random_);
  sink_.files = {File("i-1_pid_8", -5'000), File("i-1_pid_9", -100), File("i-1_pid_10", 10)};
  source_->ApplyOrder(SourceOrder::Start(capture, spec_, {}));
  Pass(3000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_10/ntrace.pb", "i-1_pid_9/ntrace.pb"));
}

TEST_F(ArtifactSourceTest, GivesUpOnConstantlyChangingFile) {
  sink_.files = {File("i-1_pid_9", 10)};
  sink_.fate = Fate::kChanged;
  Start();
  Pass(20'000);
  EXPECT_THAT(sink_.submitted, SizeIs(limits::kArtifactReadsMax));
  EXPECT_EQ(metrics_.artifacts_changed, limits::kArtifactReadsMax);
  EXPECT_EQ(metrics_.artifacts_given_up, 1u);
  EXPECT_THAT(sink_.forgone,
              ElementsAre("i-1_pid_9/ntrace.pb: it changed during every attempt to read it"));
}

TEST_F(ArtifactSourceTest, DoesNotRetryRefusedFiles) {
  sink_.files = {File("i-1_pid_9", 10)};
  sink_.fate = Fate::kRefused;
  sink_.why = "the disk is full";
  Start();
  Pass(10'000);
  Stop();
  Pass(2000);
  EXPECT_TRUE(Finished());
  EXPECT_THAT(sink_.submitted, SizeIs(1));
  EXPECT_EQ(metrics_.artifacts_refused, 1u);
  EXPECT_THAT(sink_.forgone, ElementsAre("i-1_pid_9/ntrace.pb: the disk is full"));
}

TEST_F(ArtifactSourceTest, DirectoryOfAnEarlierProcessOrAnotherNamespaceIsNotAWorkers) {
  AddWorker(7, -10'000);
  AddWorker(8, -10'000, "0123456789ab");
  // Its start is not known.
  participants_.workers.push_back({.instance_id = "i-1", .boot_id = "boot", .pid = 9});
  sink_.files = {File("i-1_pid_7", -20'000), File("i-1_pid_7_abcdef", -5'000),
                 File("i-1_pid_8_abcdef", -5'000), File("i-1_pid_9", -5'000)};
  Start();
  Pass(5000);
  EXPECT_THAT(sink_.submitted, ElementsAre("i-1_pid_8_abcdef/ntrace.pb"));
}

TEST_F(ArtifactSourceTest, FileThatIsRemovedBeforeItIsHandedOverIsNotWaitedFor) {
  sink_.files = {File("i-1_pid_9", 10)};
  Start();
  Pass(0);
  sink_.files.clear();
  Stop();
  Pass(2000);
  EXPECT_TRUE(Finished());
  EXPECT_THAT(sink_.submitted, IsEmpty());
}

TEST_F(ArtifactSourceTest, CapturesThatAreNotItsOwnAreFinishedAtOnce) {
  spec_.selection.instance_ids = {"i-2"};
  Start();
  EXPECT_TRUE(Finished());
  spec_ = {.mode = CaptureMode::kFlightRecorder};
  Start();
  EXPECT_TRUE(Finished());
}

TEST(ProcessStart, StartOfThisProcessIsRecent) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const uint64_t now = SystemClock().RealtimeNs();
  const uint64_t start = ProcessStartNs(std::stoull(field));
  EXPECT_LE(start, now);
  EXPECT_LT(now - start, 600'000'000'000u);
}

TEST(ProcessStart, TicksArePartsOfASecond) {
  const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t boot = ProcessStartNs(0);
  EXPECT_NEAR(static_cast<double>(ProcessStartNs(per_second * 3 / 2) - boot), 1.5e9, 1e8);
}

}  // namespace
}  // namespace neurontrace
