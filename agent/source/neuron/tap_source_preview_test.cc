// SPDX-License-Identifier: Apache-2.0
// A preview's numbers: what a capture would have read and handed over, and nothing of it sent.
#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

class TapSourcePreviewTest : public TapSourceTest {
 protected:
  // Records the same documents in this mode, to the end; gives the last status.
  CaptureWorkerStatus Record(CaptureMode mode, const CaptureId& id) {
    CaptureSpec spec;
    spec.mode = mode;
    spec.filter.event_types = {"^nrt_tensor_free"};
    source_->ApplyOrder(SourceOrder::Start(id, spec, {}));
    while (tap_.ReadCommand()) {
    }
    tap_.SetState(TapState::kStreaming);
    tap_.WriteStarted(id);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, id);
    Deliver();
    for (uint64_t i = 0; i < 40; ++i) {
      tap_.WriteDocument(Document(i % 2, i / 2 * 50, 50), id);
      runner_.RunUntilIdle();
      Pass(50);
    }
    Pass(700);  // the last chunks are old enough
    counted_while_recording_ = listener_.statuses[id];
    source_->Stop(id, Source::kStopNow);
    EXPECT_TRUE(tap_.ReadCommand());
    tap_.WriteStopped(id, TapStopReason::kCommand);
    tap_.SetState(TapState::kIdle);
    tap_.Answer(TapMessageType::kStop, TapResult::kOk, id);
    Deliver();
    Pass(300);
    sink_.StoreAll();
    Pass(300);
    return listener_.statuses[id];
  }
  CaptureWorkerStatus counted_while_recording_;
};

TEST_F(TapSourcePreviewTest, PreviewCountsEventsAndSendsNothing) {
  Connect();
  const CaptureWorkerStatus preview = Record(CaptureMode::kPreview, capture_);
  EXPECT_TRUE(sink_.entries.empty());
  EXPECT_EQ(preview.state, CaptureWorkerState::kComplete);
  EXPECT_EQ(preview.events_read, 2'000u);
  EXPECT_EQ(preview.events_stored, 0u);
  EXPECT_EQ(preview.events_lost, 0u);
  EXPECT_GT(preview.bytes_read, 0u);
  EXPECT_EQ(preview.worker.instance_id, "i-0abc");
  EXPECT_GT(preview.begun_realtime_ns, 0u);

  const CaptureWorkerStatus real = Record(CaptureMode::kStream, other_);
  EXPECT_EQ(real.events_read, preview.events_read);
  uint64_t bytes = 0;
  for (const auto& entry : sink_.entries) bytes += entry.chunk.columns.size();
  EXPECT_GE(real.bytes_read, bytes);
  // Chunks are closed by age, which is not the same to the event.
  EXPECT_NEAR(static_cast<double>(real.bytes_read), static_cast<double>(preview.bytes_read),
              0.05 * static_cast<double>(real.bytes_read));
}

// While it runs, so that it can be ended by its clock, whatever is under way.
TEST_F(TapSourcePreviewTest, ReportsNumbersWhileRunning) {
  Connect();
  const CaptureWorkerStatus end = Record(CaptureMode::kPreview, capture_);
  EXPECT_EQ(counted_while_recording_.events_read, end.events_read);
  // All but the chunks without events that end two streams.
  EXPECT_NEAR(static_cast<double>(counted_while_recording_.bytes_read),
              static_cast<double>(end.bytes_read), 600);
}

}  // namespace
}  // namespace neurontrace
