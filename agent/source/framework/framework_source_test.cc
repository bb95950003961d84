// SPDX-License-Identifier: Apache-2.0
// The source from files on disk to chunks in a recording sink: which files belong to a capture,
// when one is taken for whole, and that a restart stores every event once.
#include "agent/source/framework/framework_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "agent/source/framework/framework_source_fixture.h"
#include "lib/base/clean_text.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(FrameworkSourceTest, FileOfTheCommandLineIsReadAtOnceWhateverItsAge) {
  MakeSource({Write(folder_ + "/i-9_pid_4711/rank3.pt.trace.json", TraceText(0, 100), -10'000)});
  Start();
  Pass(100);
  EXPECT_THAT(Chunks(), ElementsAre("rank3.pt.trace.json 0 100 end"));
  const ChunkHeader& header = sink_.entries.at(0).chunk.header;
  EXPECT_EQ(header.stream.kind, StreamKind::kFramework);
  EXPECT_EQ(header.stream.nc_idx, limits::kNoNcIdx);
  EXPECT_EQ(header.stream.worker.instance_id, "i-1");
  EXPECT_EQ(header.stream.worker.pid, 4711u);
  EXPECT_EQ(header.first_timestamp_ns, 1'000u);
  EXPECT_EQ(header.last_timestamp_ns, 100'000u);
  ASSERT_EQ(header.rank_evidence.size(), 1u);
  EXPECT_EQ(header.rank_evidence[0].source, RankSource::kFrameworkFile);
  EXPECT_EQ(header.rank_evidence[0].worker_gid, 3);
  EXPECT_EQ(header.rank_evidence[0].world_size, 8);

  EXPECT_FALSE(source_->IsFinished(capture_));
  source_->Stop(capture_, Source::kStopNow);
  Pass(100);
  EXPECT_FALSE(source_->IsFinished(capture_)) << "no receipt yet";
  sink_.StoreAll();
  Pass(100);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_TRUE(status().framework);
  EXPECT_EQ(status().events_read, 100u);
  EXPECT_EQ(status().events_stored, 100u);
  EXPECT_EQ(status().streams, 1u);
}

TEST_F(FrameworkSourceTest, CapturesThatLeaveItOutPassItBy) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 1))});
  spec_.filter.include_framework = false;
  Start();
  Pass(1'000);
  EXPECT_THAT(Chunks(), IsEmpty());
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(listener_.statuses, IsEmpty());
  spec_.filter.include_framework = true;
  spec_.selection.instance_ids = {"i-2"};
  Start();
  Pass(1'000);
  EXPECT_THAT(Chunks(), IsEmpty());
}

TEST_F(FrameworkSourceTest, DistinguishesFilesOfSameName) {
  MakeSource({Write(folder_ + "/a/x.trace.json", TraceText(0, 1)),
              Write(folder_ + "/b/x.trace.json", TraceText(0, 2))});
  Start();
  Pass(100);
  EXPECT_THAT(Chunks(),
              UnorderedElementsAre("x.trace.json 0 1 end", folder_ + "/b/x.trace.json 0 2 end"));
}

TEST_F(FrameworkSourceTest, DistinguishesUnsendableNamesAcrossRestart) {
  std::string folders;
  for (int i = 0; i < 100; ++i) folders += "é";
  folders += "/" + std::string(200, 'd') + "/" + std::string(150, 'n');
  const std::vector<std::string> names = {
      "a_?.trace.json",
      "a_\xe4.trace.json",
      "a_\xf6.trace.json",
      "a_\n.trace.json",
      // Over the limit, which falls into a character of some.
      "1" + folders + "1.trace.json",
      "2" + folders + "1.trace.json",
      "1" + folders + "12.trace.json",
      "job_\xff/framework_mapping_1.json",
  };
  MakeSource({}, true);
  Start();
  int contents = 0;
  for (const std::string& name : names) {
    const bool is_mapping = name.ends_with("mapping_1.json");
    contents += 10;
    Write(watched_ + "/" + name, is_mapping ? R"({"version":1,"data":[]})" : TraceText(contents, 4),
          1);
  }
  Pass(2'000);
  std::set<std::string> streams;
  for (const auto& entry : sink_.entries) {
    const std::string& name = entry.chunk.header.stream.name;
    EXPECT_EQ(CleanText(name, limits::kIdentityStringBytesMax), name);
    EXPECT_TRUE(streams.insert(name).second) << name;
    EXPECT_EQ(IsFrameworkMappingName(name), entry.chunk.header.event_count == 0) << name;
  }
  EXPECT_EQ(streams.size(), names.size());
  EXPECT_TRUE(streams.contains("a_?.trace.json")) << "as it is";
  EXPECT_EQ(status().events_read, 4 * (names.size() - 1));

  sink_.StoreAll();
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  sink_ = RecordingSink();
  MakeSource({}, true);
  Start(cursors);
  // A name that already looks like one with a digest gets another digest.
  for (const std::string& name : streams) {
    if (name.starts_with("~")) Write(watched_ + "/" + name, TraceText(++contents, 1), 2);
  }
  Pass(2'000);
  const size_t made = streams.size() - 1;
  EXPECT_EQ(sink_.entries.size(), made) << "the others are stored";
  for (const auto& entry : sink_.entries) {
    EXPECT_TRUE(streams.insert(entry.chunk.header.stream.name).second);
  }
}

TEST_F(FrameworkSourceTest, AFileOfAnUncleanNameThatIsBeingWrittenIsWaitedForToo) {
  MakeSource({}, true);
  Start();
  const std::string path = watched_ + "/a_\xe4.trace.json";
  for (int i = 1; i <= 4; ++i) {
    Write(path, TraceText(0, i), i);
    Pass(500);
    EXPECT_THAT(Chunks(), IsEmpty()) << "changed since the last look";
  }
  Pass(1'000);
  ASSERT_EQ(sink_.entries.size(), 1u);
  EXPECT_EQ(sink_.entries[0].chunk.header.event_count, 4u);
}

TEST_F(FrameworkSourceTest, ReadsFilesAddedOrChangedDuringCapture) {
  Write(watched_ + "/old.trace.json", TraceText(0, 1), -100);
  Write(watched_ + "/rewritten.trace.json", TraceText(0, 1), -100);
  MakeSource({}, true);
  Start();
  Pass(1'500);
  EXPECT_THAT(Chunks(), IsEmpty());
  EXPECT_THAT(listener_.statuses, IsEmpty()) << "nothing to say without files";
  Write(watched_ + "/plugins/profile/run/host.trace.json", TraceText(0, 3), 1);
  Write(watched_ + "/rewritten.trace.json", TraceText(0, 4), 1);
  Write(watched_ + "/prof_2.json", TraceText(0, 5), 1);
  Pass(2'000);
  EXPECT_THAT(Chunks(),
              UnorderedElementsAre("plugins/profile/run/host.trace.json 0 3 end",
                                   "prof_2.json 0 5 end", "rewritten.trace.json 0 4 end"));
  source_->Stop(capture_, Source::kStopNow);
  Write(watched_ + "/late.trace.json", TraceText(0, 1), 3);
  Pass(2'000);
  sink_.StoreAll();
  Pass(100);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(sink_.entries.size(), 3u);
}

TEST_F(FrameworkSourceTest, MappingFilesAreFoundBesideTheTraces) {
  const std::string name = "i-1_pid_4711/framework_mapping_20251121_101530_042.json";
  const std::string entry = R"({"nrta_seq_id":7,"framework_op_exec_ids":[{"seq_nr":"12"}]})";
  MakeSource({}, true);
  Start();
  Pass(1'500);
  Write(watched_ + "/i-1_pid_4711/rank0.pt.trace.json", TraceText(0, 3), 1);
  Write(watched_ + "/" + name, R"({"version":1,"data":[)" + entry, 1);
  Pass(2'000);
  EXPECT_THAT(Chunks(), ElementsAre("i-1_pid_4711/rank0.pt.trace.json 0 3 end"));
  Write(watched_ + "/" + name, R"({"version":1,"data":[)" + entry + "]}", 2);
  Pass(2'000);
  ASSERT_EQ(sink_.entries.size(), 2u);
  const ChunkHeader& header = sink_.entries[1].chunk.header;
  EXPECT_EQ(header.stream.name, name);
  EXPECT_EQ(header.stream.worker.pid, 4711u);
  EXPECT_EQ(header.event_count, 1u);
  EXPECT_THAT(header.rank_evidence, IsEmpty());
  EXPECT_THAT(sink_.Events().back(),
              HasSubstr(R"("event_type":"neurontrace.framework_mapping","phase":"metadata",)"
                        R"("data":{"seq_nr":[12],"th_id":[null],"stream_id":[null]})"));
}

TEST_F(FrameworkSourceTest, RefusesMappingFileOfUnsupportedVersionWithMessage) {
  MakeSource({Write(folder_ + "/framework_mapping_1.json", R"({"version":7,"data":[{}]})"),
              Write(folder_ + "/a.trace.json", TraceText(0, 3))});
  Start();
  Pass(100);
  EXPECT_THAT(Chunks(),
              UnorderedElementsAre("a.trace.json 0 3 end", "framework_mapping_1.json 0 0 end"));
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  source_->Stop(capture_, Source::kStopNow);
  sink_.StoreAll();
  Pass(100);
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_stored, 3u);
  EXPECT_THAT(status().detail,
              HasSubstr("1 of 2 files could not be read completely, such as "
                        "framework_mapping_1.json: before byte 12: version 7 of mapping files is "
                        "unsupported; version 1 is supported"));
}

TEST_F(FrameworkSourceTest, ADamagedElementMakesAFileIncomplete) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 3)),
              Write(folder_ + "/damaged.trace.json",
                    R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1},{"ph":"X","na,)"
                    R"({"ph":"X","name":"b","ts":2,"dur":1}]})")});
  Start();
  Pass(100);
  source_->Stop(capture_, Source::kStopNow);
  sink_.StoreAll();
  Pass(100);
  EXPECT_THAT(status().detail,
              HasSubstr("1 of 2 files could not be read completely, such as damaged.trace.json: "));
}

TEST_F(FrameworkSourceTest, FileThatIsBeingWrittenIsWaitedFor) {
  MakeSource({}, true);
  Start();
  const std::string path = watched_ + "/growing.trace.json";
  Write(path, TraceText(0, 10, ""), 1);
  Pass(3'000);
  EXPECT_THAT(Chunks(), IsEmpty());
  source_->Stop(capture_, Source::kStopNow);
  Pass(1'000);
  EXPECT_FALSE(source_->IsFinished(capture_));
  Write(path, TraceText(0, 20), 5);
  Pass(2'000);
  EXPECT_THAT(Chunks(), ElementsAre("growing.trace.json 0 20 end"));
}

TEST_F(FrameworkSourceTest, ReadsTruncatedFileAsFarAsPossible) {
  MakeSource({}, true);
  Start();
  Write(watched_ + "/cut.trace.json", TraceText(0, 12, ""), 1);
  source_->Stop(capture_, Source::kStopNow);
  Pass(9'000);
  EXPECT_THAT(Chunks(), IsEmpty());
  Pass(4'000);
  sink_.StoreAll();
  Pass(100);
  EXPECT_THAT(Chunks(), ElementsAre("cut.trace.json 0 12 end"));
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(status().detail, HasSubstr("is truncated"));
}

TEST_F(FrameworkSourceTest, ReportsMissingFile) {
  MakeSource({folder_ + "/none.trace.json"});
  Start();
  source_->Stop(capture_, Source::kStopNow);
  Pass(200);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
  EXPECT_THAT(status().detail, HasSubstr("no such file"));
}

TEST_F(FrameworkSourceTest, WaitsWhileTheQueueHasNoRoom) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 5))});
  sink_.has_room = false;
  Start();
  Pass(1'000);
  EXPECT_THAT(Chunks(), IsEmpty());
  EXPECT_GT(metrics_.reads_waiting.load(), 10u);
  sink_.has_room = true;
  Pass(100);
  EXPECT_THAT(Chunks(), ElementsAre("a.trace.json 0 5 end"));
}

TEST_F(FrameworkSourceTest, RestartContinuesAfterStoredEvents) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 20'000))});
  Start();
  Pass(500);
  const size_t chunks = sink_.entries.size();
  ASSERT_GT(chunks, 3u);
  const std::vector<std::string> all = sink_.Events();
  ASSERT_EQ(all.size(), 20'000u);
  for (size_t stored = 0; stored <= chunks; ++stored) {
    SCOPED_TRACE(stored);
    RecordingSink first = std::move(sink_);
    sink_ = RecordingSink();
    for (auto& entry : first.entries) entry.answered = true;
    for (size_t i = 0; i < stored; ++i) first.entries[i].stored = true;
    MakeSource({folder_ + "/a.trace.json"});
    Start(first.Cursors());
    Pass(500);
    std::vector<std::string> events = first.Events(true);
    for (std::string& event : sink_.Events()) events.push_back(std::move(event));
    EXPECT_EQ(events, all);
    if (!sink_.entries.empty()) {
      EXPECT_EQ(sink_.entries[0].chunk.header.sequence, stored);
    }
    source_->Stop(capture_, Source::kStopNow);
    sink_.StoreAll();
    Pass(200);
    EXPECT_TRUE(source_->IsFinished(capture_));
    EXPECT_EQ(status().events_read, 20'000u) << "of both runs";
    for (auto& entry : first.entries) entry.stored = false;
    sink_ = std::move(first);
  }
}

TEST_F(FrameworkSourceTest, RestartFindsTheFilesThatCameWhileItWasAway) {
  capture_ = CaptureId::Make(clock_, random_);
  Write(watched_ + "/before.trace.json", TraceText(0, 1), -5);
  Write(watched_ + "/meanwhile.trace.json", TraceText(0, 2), 3);
  clock_.AdvanceNs(10'000 * kMs);
  MakeSource({}, true);
  Start();
  Pass(2'000);
  EXPECT_THAT(Chunks(), ElementsAre("meanwhile.trace.json 0 2 end"));
}

TEST_F(FrameworkSourceTest, EndedCaptureFinishesStartedFilesOnly) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 20'000))});
  Start();
  Pass(500);
  ASSERT_GT(sink_.entries.size(), 3u);
  sink_.entries[0].answered = sink_.entries[0].stored = true;
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  sink_ = RecordingSink();
  Write(watched_ + "/later.trace.json", TraceText(0, 2), 3);
  MakeSource({folder_ + "/a.trace.json", Write(folder_ + "/b.trace.json", TraceText(0, 5))}, true);
  source_->ApplyOrder(SourceOrder::Finish(capture_, spec_, cursors, std::nullopt));
  source_->Stop(capture_, Source::kStopNow);
  Pass(2'000);
  sink_.StoreAll();
  Pass(1'000);
  EXPECT_TRUE(source_->IsFinished(capture_));
  ASSERT_FALSE(sink_.entries.empty());
  for (const auto& entry : sink_.entries) {
    EXPECT_EQ(entry.chunk.header.stream.name, "a.trace.json");
  }
  EXPECT_EQ(sink_.entries[0].chunk.header.sequence, 1u);
  EXPECT_EQ(status().events_read, 20'000u);
}

TEST_F(FrameworkSourceTest, ArmedItReadsNothingBeforeItBegins) {
  MakeSource({Write(folder_ + "/a.json", TraceText(0, 3))});
  capture_ = CaptureId::Make(clock_, random_);
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
  ASSERT_EQ(listener_.statuses.size(), 1u);
  EXPECT_EQ(listener_.statuses[0].state, CaptureWorkerState::kArmed);
  EXPECT_TRUE(listener_.statuses[0].framework);
  Pass(2'000);
  EXPECT_THAT(sink_.entries, IsEmpty());
  source_->ApplyOrder(SourceOrder::Begin(capture_, {}));
  Pass(2'000);
  EXPECT_THAT(Chunks(), testing::SizeIs(testing::Ge(1u)));
}

TEST_F(FrameworkSourceTest, ArmedCaptureEndsWithEmptyDirectory) {
  MakeSource({}, true);
  capture_ = CaptureId::Make(clock_, random_);
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
  source_->ApplyOrder(SourceOrder::Begin(capture_, {}));
  Pass(1'000);
  source_->Stop(capture_, Source::kStopNow);
  Pass(20'000);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(listener_.statuses.back().state, CaptureWorkerState::kComplete);
  capture_ = CaptureId::Make(clock_, random_);
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(listener_.statuses.back().detail, HasSubstr("before it began"));
}

TEST_F(FrameworkSourceTest, FlightRecordersSnapshotsAndPreviewsAreNotItsOwn) {
  MakeSource({Write(folder_ + "/a.json", TraceText(0, 3))});
  for (const CaptureMode mode :
       {CaptureMode::kFlightRecorder, CaptureMode::kSnapshot, CaptureMode::kPreview}) {
    spec_.mode = mode;
    capture_ = CaptureId::Make(clock_, random_);
    source_->ApplyOrder(SourceOrder::Arm(capture_, spec_, {}));
    source_->ApplyOrder(SourceOrder::Begin(capture_, {}));
    source_->ApplyOrder(SourceOrder::Join(capture_, spec_, {}, {}));
    Pass(1'000);
    EXPECT_TRUE(source_->IsFinished(capture_));
  }
  EXPECT_THAT(listener_.statuses, IsEmpty());
  EXPECT_THAT(sink_.entries, IsEmpty());
}

TEST_F(FrameworkSourceTest, ForgottenCaptureLeavesNothingBehind) {
  MakeSource({Write(folder_ + "/a.trace.json", TraceText(0, 20'000))});
  Start();
  source_->Forget(capture_);
  Pass(1'000);
  EXPECT_THAT(Chunks(), IsEmpty());
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST(TraceFileNames, DetectsUnusualNamesByContent) {
  for (const char* name : {"x.json", "rank-0.json.gz", "host.xplane.pb", "trace.json"}) {
    EXPECT_TRUE(CanBeTraceFileName(name)) << name;
  }
  for (const char* name : {"x.jsonl", "x.json.tmp", "x.json.gz.gz", "model.pt", "x.gz", ""}) {
    EXPECT_FALSE(CanBeTraceFileName(name)) << name;
  }
}

TEST(TraceFileNames, AreThoseOfTheProfilers) {
  for (const char* name : {"trace.json", "trace.json.gz", "a.trace.json", "w0.pt.trace.json.gz"}) {
    EXPECT_TRUE(IsTraceFileName(name)) << name;
  }
  for (const char* name : {"x.json", "mytrace.json", "trace.json.tmp", "a.trace.json.gz.gz", ""}) {
    EXPECT_FALSE(IsTraceFileName(name)) << name;
  }
}

TEST(TraceFileNames, ReadsPidFromDirectory) {
  EXPECT_EQ(PidOfDirectory("/data/i-0abc_pid_4711/x.trace.json"), 4711u);
  EXPECT_EQ(PidOfDirectory("i-0abc_pid_1/x.trace.json"), 1u);
  EXPECT_EQ(PidOfDirectory("/data/i-0abc_pid_x1/x.trace.json"), 0u);
  EXPECT_EQ(PidOfDirectory("/i_pid_7/sub/x.trace.json"), 0u);
  EXPECT_EQ(PidOfDirectory("x.trace.json"), 0u);
  EXPECT_EQ(PidOfDirectory("/d_pid_99999999999/x.trace.json"), 0u);
}

}  // namespace
}  // namespace neurontrace
