// SPDX-License-Identifier: Apache-2.0
// The source from files of a made-up /proc to chunks in a recording sink, with time advanced: when
// it samples, the contents of a sample, and that an agent that restarts continues.
#include "agent/source/host/host_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMs = 1'000'000;

// Captures that something on this host records for; counts the questions.
class FakeParticipants final : public CaptureParticipants {
 public:
  bool Records(const CaptureId& id) const override {
    ++asked;
    return recording.contains(id);
  }
  std::vector<WorkerIdentity> WorkersOf(const CaptureId&) const override { return {}; }

  std::set<CaptureId> recording;
  mutable int asked = 0;
};

class HostSourceTest : public ::testing::Test {
 protected:
  HostSourceTest() {
    std::string pattern = ::testing::TempDir() + "host_source_XXXXXX";
    options_ = {.agent_id = "agent",
                .instance_id = "i-1",
                .boot_id = "boot",
                .proc_root = mkdtemp(pattern.data())};
    SetProc(0, 0, 2000);
    capture_ = CaptureId::Make(clock_, random_);
    MakeSource();
  }
  ~HostSourceTest() override { std::filesystem::remove_all(options_.proc_root); }

  // Ticks since the machine began, of one processor.
  void SetProc(uint64_t busy, uint64_t idle, uint64_t available_kb) {
    std::ofstream(options_.proc_root + "/stat")
        << fmt::format("cpu  {0} 0 0 {1}\ncpu0 {0} 0 0 {1}\nctxt 1\n", busy, idle);
    std::ofstream(options_.proc_root + "/meminfo")
        << fmt::format("MemTotal: 4000 kB\nMemAvailable: {} kB\n", available_kb);
  }
  void MakeSource() {
    source_ =
        std::make_unique<HostSource>(options_, clock_, runner_, sink_, metrics_, participants_);
  }
  void SetRecording(bool records) {
    if (records) {
      participants_.recording.insert(capture_);
    } else {
      participants_.recording.erase(capture_);
    }
    source_->PollAgain();
  }
  void Start() { source_->ApplyOrder(SourceOrder::Start(capture_, spec_, sink_.Cursors())); }
  void Pass(uint64_t ms) { runner_.AdvanceNs(ms * kMs); }
  // The first of a source: a second in which the processor is busy for a quarter.
  void StoreSample() {
    Pass(0);
    SetProc(10, 30, 1000);
    Pass(1000);
    source_->Flush();
    sink_.StoreAll();
  }
  std::vector<std::string> Chunks() const {
    std::vector<std::string> lines;
    for (const auto& entry : sink_.entries) {
      const ChunkHeader& header = entry.chunk.header;
      if (header.canary_realtime_ns != 0) continue;
      lines.push_back(
          fmt::format("{} events{}", header.event_count, header.end_of_stream ? " end" : ""));
    }
    return lines;
  }

  FakeClock clock_{1'700'000'000'000'000'000};
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{9};
  HostSource::Options options_;
  CaptureId capture_;
  CaptureSpec spec_;
  FakeParticipants participants_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  std::unique_ptr<HostSource> source_;
};

TEST_F(HostSourceTest, SamplesOnceASecondFromTheBeginningOfTheIntervalOn) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  SetProc(25, 75, 1000);
  Pass(1000);
  SetProc(125, 75, 3000);
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(
      sink_.Events(),
      ElementsAre(
          R"({"event_type":"host_cpu","phase":"counter","data":{"cpu_id":"average",)"
          R"("util_percent":25,"duration_ns":1000000000},"timestamp_ns":1700000000000000000})",
          R"({"event_type":"host_cpu","phase":"counter","data":{"cpu_id":"0",)"
          R"("util_percent":25,"duration_ns":1000000000},"timestamp_ns":1700000000000000000})",
          R"({"event_type":"host_memory","phase":"counter","data":{"used_bytes":3072000,)"
          R"("used_percent":75,"total_bytes":4096000},"timestamp_ns":1700000001000000000})",
          R"({"event_type":"host_cpu","phase":"counter","data":{"cpu_id":"average",)"
          R"("util_percent":100,"duration_ns":1000000000},"timestamp_ns":1700000001000000000})",
          R"({"event_type":"host_cpu","phase":"counter","data":{"cpu_id":"0",)"
          R"("util_percent":100,"duration_ns":1000000000},"timestamp_ns":1700000001000000000})",
          R"({"event_type":"host_memory","phase":"counter","data":{"used_bytes":1024000,)"
          R"("used_percent":25,"total_bytes":4096000},"timestamp_ns":1700000002000000000})"));
  const StreamIdentity& stream = sink_.entries.at(0).chunk.header.stream;
  EXPECT_EQ(stream.kind, StreamKind::kHost);
  EXPECT_EQ(stream.worker, (WorkerIdentity{.instance_id = "i-1", .boot_id = "boot"}));
  EXPECT_EQ(stream.nc_idx, limits::kNoNcIdx);
  EXPECT_EQ(ToString(stream), "i-1 host");
  EXPECT_EQ(metrics_.host_samples, 2u);

  EXPECT_FALSE(source_->IsFinished(capture_)) << "no receipt yet";
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(HostSourceTest, WaitsUntilSomethingRecordsHere) {
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
  Pass(3000);
  source_->ApplyOrder(SourceOrder::Begin(capture_, {}));
  Pass(3000);
  EXPECT_THAT(sink_.entries, IsEmpty());
  EXPECT_EQ(participants_.asked, 1) << "it is told, and does not ask";
  SetRecording(true);
  Pass(0);
  SetProc(1, 1, 1);
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(Chunks(), ElementsAre("3 events", "0 events end"));
}

TEST_F(HostSourceTest, CaptureWithoutRecordingWorkerEndsWithoutStream) {
  Start();
  Pass(5000);
  EXPECT_FALSE(source_->IsFinished(capture_));
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(sink_.entries, IsEmpty());
}

TEST_F(HostSourceTest, ShortCaptureHasOneSampleOfItsLength) {
  participants_.recording.insert(capture_);
  Start();
  Pass(400);
  SetProc(30, 10, 1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(Chunks(), ElementsAre("3 events end"));
  EXPECT_THAT(sink_.Events().at(0), HasSubstr(R"("util_percent":75,"duration_ns":400000000)"));
}

TEST_F(HostSourceTest, EndOfTheCaptureRightBehindASampleAddsNone) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  SetProc(30, 10, 1000);
  Pass(1000);
  Pass(50);
  SetProc(31, 10, 1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(sink_.Events(), SizeIs(3));
}

TEST_F(HostSourceTest, ReadingThatFailsMakesTheNextIntervalLonger) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  std::filesystem::remove(options_.proc_root + "/meminfo");
  Pass(1000);
  SetProc(10, 190, 1000);
  Pass(1000);
  source_->Flush();
  EXPECT_EQ(metrics_.host_readings_failed, 1u);
  EXPECT_THAT(sink_.Events().at(0), HasSubstr(R"("util_percent":5,"duration_ns":2000000000)"));
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(HostSourceTest, WithoutRoomTheNextIntervalIsLonger) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  sink_.has_room = false;
  Pass(3000);
  EXPECT_EQ(metrics_.host_samples, 0u);
  sink_.has_room = true;
  SetProc(10, 30, 1000);
  Pass(1000);
  source_->Flush();
  EXPECT_THAT(sink_.Events().at(0), HasSubstr(R"("util_percent":25,"duration_ns":4000000000)"));
}

TEST_F(HostSourceTest, TwoCapturesHaveTheirOwnIntervalsOfOneReading) {
  participants_.recording.insert(capture_);
  Start();
  Pass(500);
  const CaptureId second = CaptureId::Make(clock_, random_);
  participants_.recording.insert(second);
  source_->ApplyOrder(SourceOrder::Start(second, spec_, {}));
  Pass(0);
  SetProc(10, 30, 1000);
  Pass(500);
  source_->Flush();
  ASSERT_THAT(sink_.entries, SizeIs(2));
  EXPECT_THAT(sink_.Events().at(0), HasSubstr(R"("duration_ns":1000000000)"));
  EXPECT_THAT(sink_.Events().at(3), HasSubstr(R"("duration_ns":500000000)"));
}

TEST_F(HostSourceTest, RestartedAgentContinuesAndReportsGap) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  source_.reset();
  Pass(4000);
  MakeSource();
  Start();
  Pass(0);
  SetProc(20, 60, 1000);
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(Chunks(), ElementsAre("3 events", "3 events end"));
  const ChunkHeader& last = sink_.entries.back().chunk.header;
  EXPECT_EQ(last.events_before, 3u);
  ASSERT_THAT(last.losses, SizeIs(1));
  EXPECT_EQ(last.losses[0].events, 0u);
  EXPECT_FALSE(last.losses[0].events_unknown);
  EXPECT_EQ(last.losses[0].last_timestamp_ns, 1'700'000'005'000'000'000u);
  EXPECT_NEAR(static_cast<double>(last.losses[0].first_timestamp_ns), 1'700'000'001e9, 1e3);
  EXPECT_THAT(last.losses[0].detail, HasSubstr("restarted"));
}

TEST_F(HostSourceTest, StreamOfAnAgentBeforeIsEndedOnceTheCaptureHasStopped) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  MakeSource();
  source_->ApplyOrder(SourceOrder::Finish(capture_, spec_, sink_.Cursors(), std::nullopt));
  Pass(3000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(Chunks(), ElementsAre("3 events", "0 events end"));
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(HostSourceTest, SamplesWhileSomethingRecordsAndNotWhenItHasEnded) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  SetProc(10, 30, 1000);
  Pass(1400);
  SetProc(20, 30, 1000);
  SetRecording(false);
  Pass(10'000);
  SetProc(900, 30, 1000);
  EXPECT_EQ(metrics_.host_samples, 2u);
  SetRecording(true);
  Pass(0);
  SetProc(901, 33, 1000);
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  const std::vector<std::string> events = sink_.Events();
  ASSERT_THAT(events, SizeIs(10));
  EXPECT_THAT(events[3], HasSubstr(R"("util_percent":100,"duration_ns":400000000)"));
  EXPECT_THAT(events[6], HasSubstr(R"("util_percent":25,"duration_ns":600000000)"));
  EXPECT_THAT(events[6], HasSubstr(R"("timestamp_ns":1700000011400000000})"));
  EXPECT_THAT(sink_.Losses(), IsEmpty()) << "nothing is missing";
}

TEST_F(HostSourceTest, EndedWhileNothingRecordsItTakesNoLastSample) {
  participants_.recording.insert(capture_);
  Start();
  Pass(1000);
  SetRecording(false);
  Pass(5000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_THAT(Chunks(), ElementsAre("1 events", "0 events end"));
}

TEST_F(HostSourceTest, UnreadableProcIsTriedOnceASecond) {
  std::filesystem::remove(options_.proc_root + "/stat");
  participants_.recording.insert(capture_);
  Start();
  Pass(10'500);
  EXPECT_EQ(metrics_.host_readings_failed, 11u);
  EXPECT_THAT(sink_.entries, IsEmpty());
  SetProc(0, 0, 1000);
  Pass(1000);
  SetProc(10, 30, 1000);
  Pass(1000);
  EXPECT_EQ(metrics_.host_samples, 1u);
  EXPECT_EQ(metrics_.host_readings_failed, 11u);
}

TEST_F(HostSourceTest, LongIntervalGetsAChunkOfItsOwn) {
  participants_.recording.insert(capture_);
  Start();
  Pass(2000);
  SetProc(10, 30, 1000);
  Pass(1000);
  sink_.has_room = false;
  Pass(1000);
  sink_.has_room = true;
  clock_.AdvanceNs(60'000 * kMs);  // nobody runs, as on a host that is stopped
  SetProc(20, 60, 1000);
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  int long_ones = 0;
  for (const auto& entry : sink_.entries) {
    const ChunkHeader& header = entry.chunk.header;
    const uint64_t span_ns = header.last_timestamp_ns - header.first_timestamp_ns;
    if (span_ns > 3000 * kMs) ++long_ones;
    EXPECT_TRUE(span_ns <= 3000 * kMs || header.event_count == 3) << header.event_count;
  }
  EXPECT_EQ(long_ones, 1);
}

TEST_F(HostSourceTest, ReportsGapOfKilledAgentFromFirstSample) {
  participants_.recording.insert(capture_);
  Start();
  Pass(0);
  SetProc(10, 30, 1000);
  Pass(1000);  // not flushed
  sink_.StoreAll();
  source_.reset();
  Pass(4000);
  MakeSource();
  Start();
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_EQ(sink_.Losses()[0].last_timestamp_ns, 1'700'000'005'000'000'000u);
}

TEST_F(HostSourceTest, PositionAtTheEndOfAllNumbersDoesNotWrap) {
  participants_.recording.insert(capture_);
  StreamCursor cursor{.next_sequence = 1, .source_position = UINT64_MAX, .source_skip = 1};
  cursor.stream = {.agent_id = "agent",
                   .worker = {.instance_id = "i-1", .boot_id = "boot"},
                   .kind = StreamKind::kHost,
                   .nc_idx = limits::kNoNcIdx};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec_, std::vector{cursor}));
  Pass(3000);
  source_->Stop(capture_, Source::kStopNow);
  for (const auto& entry : sink_.entries) {
    EXPECT_EQ(entry.chunk.header.source_position, UINT64_MAX);
  }
  EXPECT_TRUE(sink_.entries.back().chunk.header.end_of_stream);
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(HostSourceTest, OfflineResumeStartsNothingNew) {
  participants_.recording.insert(capture_);
  source_->ApplyOrder(SourceOrder::Continue(capture_, spec_, {}));
  Pass(5000);
  EXPECT_THAT(sink_.entries, IsEmpty());
  Start();
  StoreSample();
  MakeSource();
  source_->ApplyOrder(SourceOrder::Continue(capture_, spec_, sink_.Cursors()));
  Pass(2000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(metrics_.host_samples, 3u) << "the capture of the previous agent continues";
}

// The aggregator is away, and may have stopped the capture while no agent ran.
TEST_F(HostSourceTest, GapBeforeOfflineResumeHasNoEnd) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  source_.reset();
  Pass(3'600'000);  // the capture stops meanwhile
  MakeSource();
  source_->ApplyOrder(SourceOrder::Continue(capture_, spec_, sink_.Cursors()));
  Pass(2000);
  source_->ApplyOrder(SourceOrder::Finish(capture_, spec_, sink_.Cursors(), std::nullopt));
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  const Loss gap = sink_.Losses()[0];
  EXPECT_NEAR(static_cast<double>(gap.first_timestamp_ns), 1'700'000'001e9, 1e3);
  EXPECT_EQ(gap.last_timestamp_ns, gap.first_timestamp_ns) << "it ran past the capture's stop";
  EXPECT_THAT(gap.detail, HasSubstr("until the next one"));
  EXPECT_EQ(metrics_.host_samples, 3u);
}

TEST_F(HostSourceTest, GapOfACaptureThatIsContinuedBeforeASampleEndsThere) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  MakeSource();
  Pass(4000);
  source_->ApplyOrder(SourceOrder::Continue(capture_, spec_, sink_.Cursors()));
  Start();  // the welcome came before anything was read
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_EQ(sink_.Losses()[0].last_timestamp_ns, 1'700'000'005'000'000'000u);
}

TEST_F(HostSourceTest, RepeatedCursorsCount) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  MakeSource();
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
  Start();
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(sink_.entries.back().chunk.header.events_before, 3u);
}

TEST_F(HostSourceTest, StreamOfAnEarlierBootIsEndedWithTheCapture) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  options_.boot_id = "next boot";
  MakeSource();
  Start();
  Pass(1000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_FALSE(source_->IsFinished(capture_));
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  ASSERT_THAT(cursors, SizeIs(2));
  EXPECT_TRUE(cursors[0].ended);
  EXPECT_TRUE(cursors[1].ended);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_EQ(sink_.Losses()[0].events, 0u);
  EXPECT_FALSE(sink_.Losses()[0].events_unknown);
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("was rebooted"));
}

TEST_F(HostSourceTest, LateEndIsReportedWithoutTime) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  Pass(3'600'000);  // the capture stops meanwhile
  MakeSource();
  source_->ApplyOrder(SourceOrder::Finish(capture_, spec_, sink_.Cursors(), std::nullopt));
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_EQ(sink_.Losses()[0].last_timestamp_ns, 0u);
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("from here on"));
}

TEST_F(HostSourceTest, DisabledAgentEndsExistingStreams) {
  participants_.recording.insert(capture_);
  Start();
  StoreSample();
  const size_t chunks = sink_.entries.size();
  options_.enabled = false;
  MakeSource();
  Start();
  Pass(5000);
  EXPECT_THAT(sink_.entries, SizeIs(chunks));
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_THAT(sink_.entries, SizeIs(chunks + 1));
  EXPECT_TRUE(sink_.entries.back().chunk.header.end_of_stream);
  EXPECT_EQ(metrics_.host_samples, 1u);
}

TEST_F(HostSourceTest, CapturesThatAreNotItsOwnAreFinishedAtOnce) {
  participants_.recording.insert(capture_);
  spec_.selection.instance_ids = {"i-2"};
  Start();
  EXPECT_TRUE(source_->IsFinished(capture_));
  spec_ = {.mode = CaptureMode::kFlightRecorder};
  Start();
  EXPECT_TRUE(source_->IsFinished(capture_));
  spec_ = {};
  options_.enabled = false;
  MakeSource();
  Start();
  EXPECT_TRUE(source_->IsFinished(capture_));
  Pass(5000);
  EXPECT_THAT(sink_.entries, IsEmpty());
}

}  // namespace
}  // namespace neurontrace
