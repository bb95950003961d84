// SPDX-License-Identifier: Apache-2.0
// Goal: a stored capture is judged for the window and the job that were asked for, and what could
// not be read is said. Method: the real clocks of an aggregator over a store in memory.
#include "aggregator/view/capture_insight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/view/stored_capture_test_support.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMs = 1'000'000;

class CaptureInsightTest : public StoredCaptureFixture {
 protected:
  CaptureInsightTest() {
    auto clocks =
        ClockService::Start({.udp_probes = false}, {*store_, registry_, random_, system_clock_});
    EXPECT_TRUE(clocks.ok()) << clocks.status();
    clock_service_ = *std::move(clocks);
    record_.state = CaptureState::kComplete;
    record_.ended_realtime_ns = 5'000;
    insight_.emplace(CaptureInsight::Deps{*store_, *clock_service_, system_clock_});
  }
  // Ten executions of each of four cores, which meet in a collective.
  void StoreExecutions() {
    for (uint32_t core = 0; core < 4; ++core) {
      for (uint64_t i = 0; i < 10; ++i) {
        const uint64_t at_ns = kStoredNs + i * 20 * kMs;
        const EventScript::Attributes ids = {{"exec_id", i + 1}, {"model_name", "llama"}};
        script_.Span("nc_exec_running", at_ns, at_ns + 15 * kMs, 2 * i + 1, 7, ids);
        script_.Span("cc_running", at_ns + 5 * kMs, at_ns + 6 * kMs, 2 * i + 2, 7,
                     {{"exec_id", i + 1}, {"op_id", uint64_t{1}}});
      }
      StoreChunk(core);
    }
  }
  absl::StatusOr<v1::InsightReport> Explain(const v1::ExplainRequest& request = {}) {
    return insight_->Explain(record_, request, nullptr);
  }

  prometheus::Registry registry_;
  SeededRandom random_{1};
  SystemClock system_clock_;
  std::unique_ptr<ClockService> clock_service_;
  std::optional<CaptureInsight> insight_;
};

TEST_F(CaptureInsightTest, JudgesTheWholeCapture) {
  StoreExecutions();
  const auto report = Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->cores(), 4u);
  EXPECT_EQ(report->verdicts_size(), 0);
  EXPECT_GE(report->begin_ns(), kStoredNs);
  EXPECT_EQ(report->end_ns(), kStoredNs + 195 * kMs);
}

TEST_F(CaptureInsightTest, AWindowCountsFromTheFirstEvent) {
  StoreExecutions();
  v1::ExplainRequest request;
  request.set_begin_ns(100 * kMs);
  request.set_begin_is_relative(true);
  request.set_end_ns(kStoredNs + 150 * kMs);
  const auto report = Explain(request);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->begin_ns(), kStoredNs + 100 * kMs);
  EXPECT_EQ(report->end_ns(), kStoredNs + 150 * kMs);
  EXPECT_LT(report->executions(), Explain()->executions() + 1);
  request.set_end_ns(kStoredNs);
  EXPECT_EQ(Explain(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CaptureInsightTest, ExplainsAnEmptyAnswer) {
  const auto of_nothing = Explain();
  ASSERT_TRUE(of_nothing.ok()) << of_nothing.status();
  EXPECT_THAT(of_nothing->warnings(), Contains(HasSubstr("the capture has no events")));
  StoreExecutions();
  v1::ExplainRequest request;
  request.set_begin_ns(3'600'000 * kMs);
  request.set_begin_is_relative(true);
  const auto after = Explain(request);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->cores(), 0u);
  EXPECT_EQ(after->end_ns(), after->begin_ns());
  EXPECT_THAT(after->warnings(), Contains(HasSubstr("outside of the capture")));
  EXPECT_THAT(Explain()->warnings(), Not(Contains(HasSubstr("window"))));
}

TEST_F(CaptureInsightTest, RefusesAJobThatTheCaptureDoesNotHave) {
  StoreExecutions();
  v1::ExplainRequest request;
  request.set_job("nobody");
  const absl::Status status = Explain(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'nobody'"));
}

TEST_F(CaptureInsightTest, ReportsUnreadableChunks) {
  StoreExecutions();
  StoreDamagedChunk(0);
  record_.state = CaptureState::kRecording;
  const auto report = Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->warnings(), Contains(HasSubstr("1 of 5 chunks could not be read")));
  EXPECT_THAT(report->warnings(), Contains(HasSubstr("still runs")));
}

class ReadingFollower final : public ExplainObserver {
 public:
  bool OnRead(uint64_t chunks_read, uint64_t chunks_total) override {
    EXPECT_GE(chunks_read, read);
    EXPECT_LE(chunks_read, chunks_total);
    read = chunks_read;
    total = chunks_total;
    return !ends;
  }
  bool ends = false;
  uint64_t read = 0;
  uint64_t total = 0;
};

TEST_F(CaptureInsightTest, ReportsHowMuchIsRead) {
  StoreExecutions();
  ReadingFollower follower;
  EXPECT_TRUE(insight_->Explain(record_, {}, &follower).ok());
  EXPECT_EQ(follower.read, 4u);
  EXPECT_EQ(follower.total, 4u);
}

TEST_F(CaptureInsightTest, EndsWithItsClient) {
  StoreExecutions();
  ReadingFollower follower;
  follower.ends = true;
  const auto report = insight_->Explain(record_, {}, &follower);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace neurontrace
