// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/annotation_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "agent/source/annotate/annotation_test_support.h"
#include "agent/source/neuron/tap/fake_tap.h"
#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"
#include "tap/agent_protocol.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The workers that a test says take part, in every capture.
class FakeParticipants final : public CaptureParticipants {
 public:
  bool Records(const CaptureId&) const override { return !workers.empty(); }
  std::vector<WorkerIdentity> WorkersOf(const CaptureId&) const override { return workers; }
  std::vector<WorkerIdentity> workers;
};

// This process is the one that annotates: the kernel reports it as the socket's peer.
class AnnotationSourceTest : public ::testing::Test, private TapSession::Listener {
 protected:
  AnnotationSourceTest() : runner_(clock_) {
    MakeSource();
    Connect();
    const ProcFiles proc;
    const auto pid = static_cast<uint32_t>(getpid());
    worker_ = {.instance_id = "i-0abc",
               .boot_id = "boot",
               .pid = pid,
               .start_time_ticks = proc.StartTimeTicks(pid).value_or(0),
               .container_id = proc.ContainerId(pid)};
    participants_.workers = {worker_};
  }

  void MakeSource() {
    source_ = std::make_unique<AnnotationSource>(
        AnnotationSource::Options{.agent_id = "agent",
                                  .instance_id = "i-0abc",
                                  .boot_id = "boot",
                                  .read_host_instant = [this] { return Now(); }},
        clock_, runner_, sink_, metrics_, participants_);
  }

  HostInstant Now() const {
    return {.raw_ns = clock_.MonotonicNs(),
            .monotonic_ns = clock_.MonotonicNs(),
            .realtime_ns = clock_.RealtimeNs()};
  }
  uint64_t RawIn(uint64_t ms) const { return clock_.MonotonicNs() + ms * 1'000'000; }

  void Connect() {
    int pair[2];
    int wake[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wake), 0);
    const UniqueFd wakes[2] = {UniqueFd(wake[0]), UniqueFd(wake[1])};
    library_ = UniqueFd(pair[0]);
    TapHello hello = {};
    hello.header = {kTapMessageMagic, kTapProtocolVersion,
                    static_cast<uint16_t>(TapMessageType::kAnnotateHello), sizeof hello, 0};
    hello.claimed_pid = static_cast<uint32_t>(getpid());
    const int passed[2] = {fake_.memfd(), wakes[1].get()};
    FakeTap::SendPacket(library_.get(), {reinterpret_cast<const char*>(&hello), sizeof hello},
                        passed);
    session_ = std::make_unique<TapSession>(PeerFd(UniqueFd(pair[1]), closer_), closer_, runner_,
                                            clock_, static_cast<TapSession::Listener&>(*this));
    runner_.FireAllWatches();
    ASSERT_TRUE(greeting_status_.ok()) << greeting_status_;
  }
  // TapSession::Listener
  absl::Status OnGreeting(TapSession& session, TapGreeting greeting) override {
    EXPECT_TRUE(greeting.annotates);
    greeting_status_ = source_->OnAnnotator(session, std::move(greeting));
    return greeting_status_;
  }
  void OnReport(TapSession&, const TapReport&) override {}
  void OnClosed(TapSession&, const absl::Status&) override {}

  // Returns the last order that the library has received; nothing if none came.
  std::optional<bool> LastOrder() {
    std::optional<bool> last;
    TapAnnotate order = {};
    while (recv(library_.get(), &order, sizeof order, MSG_DONTWAIT) == sizeof order) {
      last = order.recording != 0;
    }
    return last;
  }

  void Advance(uint64_t ms) {
    for (uint64_t i = 0; i < ms; i += 10) runner_.AdvanceNs(10'000'000);
  }
  void Write(AnnotationType type, std::string_view message, uint16_t level = 0,
             std::string_view category = "", uint32_t ring = 0) {
    ASSERT_TRUE(fake_.Write(FakeAnnotations::Make(type, clock_.RealtimeNs(), level), message, "",
                            category, ring));
  }
  void Stop() {
    source_->Stop(id_, Source::kStopNow);
    Advance(100);
  }

  FakeClock clock_;
  FakeTaskRunner runner_;
  PeerCloser closer_{0};
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  FakeParticipants participants_;
  FakeAnnotations fake_;
  WorkerIdentity worker_;
  const CaptureId id_ = *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  std::unique_ptr<AnnotationSource> source_;
  std::unique_ptr<TapSession> session_;
  UniqueFd library_;
  absl::Status greeting_status_;
};

TEST_F(AnnotationSourceTest, RecordsRangesAndMarksOfAWorkerThatTakesPart) {
  EXPECT_EQ(LastOrder(), false) << "nothing is recorded while there is no capture";
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  EXPECT_EQ(LastOrder(), true);
  Write(AnnotationType::kPush, "step 7", 0, "step");
  Advance(1);
  Write(AnnotationType::kMark, "saved");
  Write(AnnotationType::kPop, "");
  Advance(40);
  Stop();
  EXPECT_EQ(LastOrder(), false);
  EXPECT_THAT(sink_.Events(),
              ElementsAre(HasSubstr("step 7"), HasSubstr("saved"), HasSubstr("step")));
  ASSERT_FALSE(sink_.entries.empty());
  const StreamIdentity& stream = sink_.entries[0].chunk.header.stream;
  EXPECT_EQ(stream.kind, StreamKind::kAnnotation);
  EXPECT_EQ(stream.worker, worker_);
  EXPECT_FALSE(source_->IsFinished(id_));
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(id_));
}

TEST_F(AnnotationSourceTest, HasExactlyWhatLiesBetweenThePlannedMoments) {
  source_->ApplyOrder(SourceOrder::Arm(id_, {}, {}));
  Advance(40);
  EXPECT_EQ(LastOrder(), true) << "it records before the moment, so that none is missed";
  Write(AnnotationType::kMark, "while armed");
  Advance(40);
  source_->ApplyOrder(SourceOrder::Begin(id_, {.host_raw_ns = RawIn(100)}));
  Write(AnnotationType::kPush, "open at the begin");
  Advance(100);
  Write(AnnotationType::kMark, "inside");
  Write(AnnotationType::kPop, "");
  source_->Stop(id_, RawIn(50));
  Advance(50);
  Write(AnnotationType::kMark, "after the end");
  Advance(100);
  EXPECT_THAT(sink_.Events(), ElementsAre(HasSubstr("inside")));
  ASSERT_FALSE(sink_.entries.empty());
  const auto& remarks = sink_.entries.back().chunk.header.remarks;
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].kind, RemarkKind::kEndWithoutBegin);
}

TEST_F(AnnotationSourceTest, OtherProcessesAndCapturesAreNotRecorded) {
  participants_.workers[0].start_time_ticks += 1;
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(40);
  EXPECT_EQ(LastOrder(), false);
  CaptureSpec spec;
  spec.filter.include_framework = false;
  const CaptureId other = *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAW");
  source_->ApplyOrder(SourceOrder::Start(other, spec, {}));
  EXPECT_TRUE(source_->IsFinished(other)) << "it has no part in it";
  Stop();
  EXPECT_TRUE(source_->IsFinished(id_));
  EXPECT_TRUE(sink_.entries.empty()) << "a process without annotations has no stream";
}

TEST_F(AnnotationSourceTest, DroppedRecordsAreLosses) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  fake_.ring(3).dropped.store(5);
  fake_.header().dropped_without_ring.store(2);
  Advance(40);
  Stop();
  const std::vector<Loss> losses = sink_.Losses();
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].events, 7u);
  EXPECT_EQ(losses[0].place, LossPlace::kTapBuffer);
  EXPECT_EQ(losses[0].reason, LossReason::kFull);
}

TEST_F(AnnotationSourceTest, AnInvalidRingIsALossOfUnknownSize) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  Write(AnnotationType::kMark, "before");
  fake_.ring(9).write_pos.store(3);
  Advance(40);
  EXPECT_EQ(LastOrder(), false);
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
  Stop();
  EXPECT_THAT(sink_.Events(), ElementsAre(HasSubstr("before")));
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
}

TEST_F(AnnotationSourceTest, WithoutRoomEverythingStaysInTheProcess) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  sink_.has_room = false;
  Write(AnnotationType::kMark, "waits");
  Advance(40);
  Stop();
  EXPECT_TRUE(sink_.entries.empty());
  sink_.has_room = true;
  Advance(100);
  EXPECT_THAT(sink_.Events(), ElementsAre(HasSubstr("waits")));
}

TEST_F(AnnotationSourceTest, AProcessThatEndsIsReadToTheEnd) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  Write(AnnotationType::kMark, "last words");
  source_->OnAnnotatorGone(*session_);
  session_.reset();
  Advance(100);
  Stop();
  EXPECT_THAT(sink_.Events(), ElementsAre(HasSubstr("last words")));
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(id_));
}

TEST_F(AnnotationSourceTest, AnAgentThatRestartsContinuesTheStreamWithALoss) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Advance(20);
  Write(AnnotationType::kMark, "first");
  Advance(40);
  source_->Flush();
  sink_.StoreAll();
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  ASSERT_EQ(cursors.size(), 1u);
  session_.reset();
  MakeSource();
  Connect();
  source_->ApplyOrder(SourceOrder::Join(id_, {}, cursors, {}));
  Advance(20);
  Write(AnnotationType::kMark, "second");
  Advance(40);
  Stop();
  EXPECT_THAT(sink_.Events(), ElementsAre(HasSubstr("first"), HasSubstr("second")));
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  EXPECT_TRUE(sink_.entries.back().chunk.header.end_of_stream);
}

TEST_F(AnnotationSourceTest, StreamsOfAnEarlierRunAreEnded) {
  StreamCursor cursor;
  cursor.stream = {.agent_id = "agent",
                   .worker = {.instance_id = "i-0abc", .boot_id = "boot", .pid = 1},
                   .kind = StreamKind::kAnnotation,
                   .nc_idx = limits::kNoNcIdx,
                   .name = "annotations"};
  cursor.next_sequence = 3;
  source_->ApplyOrder(SourceOrder::Finish(id_, {}, std::vector<StreamCursor>{cursor}, {}));
  Stop();
  ASSERT_EQ(sink_.entries.size(), 1u);
  EXPECT_TRUE(sink_.entries[0].chunk.header.end_of_stream);
  EXPECT_EQ(sink_.entries[0].chunk.header.stream, cursor.stream);
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(id_));
}

}  // namespace
}  // namespace neurontrace
