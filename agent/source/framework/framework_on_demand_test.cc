// SPDX-License-Identifier: Apache-2.0
// Captures that ask frameworks for traces, with a recorder whose outcomes a test decides.
#include <gmock/gmock.h>

#include "agent/source/framework/framework_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// One worker, whose file is awaited until it appears or the test gives up.
class OneTraceRecorder final : public FrameworkRecorder {
 public:
  std::string_view framework() const override { return "pytorch"; }
  void Begin(const FrameworkOrder& order) override { trace.worker = order.workers.at(0); }
  void OnFile(const CaptureId&, std::string_view name) override {
    if (name.find("mine") != name.npos) trace.state = FrameworkTraceState::kFileSeen;
  }
  void Stop(const CaptureId&) override {}
  void Poll() override {}
  std::vector<FrameworkTrace> Traces(const CaptureId&) const override { return {trace}; }
  bool IsFileOf(const CaptureId&, std::string_view name) const override {
    return name.find("mine") != name.npos;
  }
  void Forget(const CaptureId&) override {}

  FrameworkTrace trace{.framework = "pytorch", .state = FrameworkTraceState::kAsked};
};

class FrameworkOnDemandTest : public FrameworkSourceTest {
 protected:
  // Captures leave their recorder, which is declared here and would end first.
  ~FrameworkOnDemandTest() override { source_.reset(); }
  void StartAsking() {
    participants_.workers = {{.instance_id = "i-1", .boot_id = "boot", .pid = 7}};
    spec_.filter.frameworks = {"pytorch"};
    spec_.timing.duration_ns = 1'000'000'000;
    MakeSource({}, true);
    source_->AddRecorder(recorder_);
    Start();
    Pass(1'000);
  }
  OneTraceRecorder recorder_;
};

TEST_F(FrameworkOnDemandTest, WaitsForItsFileAfterTheEndAndForNoOther) {
  StartAsking();
  ASSERT_EQ(status().framework_traces.size(), 1u);
  EXPECT_EQ(status().framework_traces[0].worker.pid, 7u);
  EXPECT_EQ(status().framework_traces[0].state, FrameworkTraceState::kAsked);
  source_->Stop(capture_, Source::kStopNow);
  Pass(5'000);
  EXPECT_FALSE(source_->IsFinished(capture_));
  Write(watched_ + "/other.trace.json", TraceText(0, 1));
  Write(watched_ + "/mine.trace.json", TraceText(0, 3));
  Pass(5'000);
  sink_.StoreAll();
  Pass(1'000);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().framework_traces[0].state, FrameworkTraceState::kFileSeen);
  EXPECT_EQ(status().events_read, 3u) << "the other file came after the end";
  EXPECT_EQ(Remarked(RemarkKind::kNoFrameworkTrace), 0u);
}

TEST_F(FrameworkOnDemandTest, ATraceThatDoesNotComeIsAFinding) {
  StartAsking();
  source_->Stop(capture_, Source::kStopNow);
  recorder_.trace.state = FrameworkTraceState::kNotSeen;
  recorder_.trace.detail = "no file";
  Pass(1'000);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(Remarked(RemarkKind::kNoFrameworkTrace), 1u);
  EXPECT_THAT(DetailsOf(RemarkKind::kNoFrameworkTrace), HasSubstr("pid 7 pytorch: not seen"));
}

TEST_F(FrameworkOnDemandTest, AnAgentThatWatchesNothingReportsWhyItCannotAsk) {
  participants_.workers = {{.instance_id = "i-1", .boot_id = "boot", .pid = 7}};
  spec_.filter.frameworks = {"pytorch"};
  MakeSource({});
  Start();
  Pass(1'000);
  ASSERT_EQ(status().framework_traces.size(), 1u);
  EXPECT_EQ(status().framework_traces[0].state, FrameworkTraceState::kFailed);
  EXPECT_THAT(status().framework_traces[0].detail, HasSubstr("--kineto-dir"));
}

}  // namespace
}  // namespace neurontrace
