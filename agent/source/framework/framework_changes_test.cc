// SPDX-License-Identifier: Apache-2.0
// Files that are overwritten, replaced, packed, cut or appended to, before, while and after they
// are read: the events of two contents are never in one stream, and no content counts twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "agent/source/framework/framework_source_fixture.h"
#include "agent/source/framework/trace_file_stream.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

FileState StateOfPath(const std::string& path) {
  FileState state;
  EXPECT_TRUE(InspectFile(path, state)) << path;
  return state;
}

class FrameworkChangesTest : public FrameworkSourceTest {
 protected:
  const std::string path_ = watched_ + "/trace.trace.json";

  // Of each chunk the rank that its file claims.
  std::vector<std::string> Ranks() const {
    std::vector<std::string> lines;
    for (const auto& entry : sink_.entries) {
      const ChunkHeader& header = entry.chunk.header;
      for (const RankEvidence& evidence : header.rank_evidence) {
        lines.push_back(fmt::format("{} {}", header.stream.name, evidence.worker_gid));
      }
    }
    return lines;
  }
  // In place, with the same size and the same time of modification.
  void OverwriteSecretly(const std::string& path, std::string_view text) {
    const FileState before = StateOfPath(path);
    ASSERT_EQ(before.bytes, text.size());
    do {
      std::ofstream(path, std::ios::binary) << text;
      const timespec time{static_cast<time_t>(before.modified_ns / 1'000'000'000),
                          static_cast<long>(before.modified_ns % 1'000'000'000)};
      const timespec times[2] = {time, time};
      ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    } while (StateOfPath(path) == before);  // until the clock of the file system moves
  }
  void WriteGzip(const std::string& path, std::string_view text) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  void EndCapture() {
    source_->Stop(capture_, Source::kStopNow);
    Pass(2'000);
    sink_.StoreAll();
    Pass(200);
    EXPECT_TRUE(source_->IsFinished(capture_));
  }
};

TEST_F(FrameworkChangesTest, OverwrittenAfterItWasReadItIsAnotherStream) {
  MakeSource({}, true);
  Start();
  Write(path_, TraceText(0, 100, "]}", 0), 1);
  Pass(2'000);
  EXPECT_THAT(Chunks(), ElementsAre("trace.trace.json 0 100 end"));
  Write(path_, TraceText(500, 100, "]}", 1), 2);
  Pass(2'000);
  const std::string other = watched_ + "/other";
  Write(other, TraceText(900, 100, "]}", 2), 3);
  std::filesystem::rename(other, path_);
  Pass(2'000);
  EndCapture();
  EXPECT_THAT(Chunks(), ElementsAre("trace.trace.json 0 100 end", "~2/trace.trace.json 0 100 end",
                                    "~3/trace.trace.json 0 100 end"));
  EXPECT_THAT(Ranks(),
              ElementsAre("trace.trace.json 0", "~2/trace.trace.json 1", "~3/trace.trace.json 2"));
  EXPECT_EQ(Remarked(RemarkKind::kFileRewritten), 2u);
  EXPECT_EQ(status().events_stored, 300u);
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
}

TEST_F(FrameworkChangesTest, DetectsOverwriteWithSameSizeAndTime) {
  MakeSource({}, true);
  Start();
  Write(path_, TraceText(0, 100, "]}", 0), 1);
  Pass(2'000);
  OverwriteSecretly(path_, TraceText(0, 100, "]}", 1));
  Pass(2'000);
  EndCapture();
  EXPECT_THAT(Ranks(), ElementsAre("trace.trace.json 0", "~2/trace.trace.json 1"));
}

TEST_F(FrameworkChangesTest, RenamedOrRepackedFileCountsOnce) {
  MakeSource({}, true);
  Start();
  const std::string text = TraceText(0, 100);
  Write(path_, text, 1);
  Pass(2'000);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_read);
  Pass(2'000);
  WriteGzip(path_ + ".gz", text);
  std::filesystem::remove(path_);
  Pass(2'000);
  std::filesystem::rename(path_ + ".gz", watched_ + "/archived.json.gz");
  Pass(2'000);
  EndCapture();
  EXPECT_THAT(Chunks(), ElementsAre("trace.trace.json 0 100 end"));
  EXPECT_EQ(status().events_stored, 100u);
  EXPECT_THAT(DetailsOf(RemarkKind::kSameContent),
              HasSubstr("trace.trace.json.gz: it has the same content as trace.trace.json\n"));
  EXPECT_THAT(DetailsOf(RemarkKind::kSameContent),
              HasSubstr("archived.json.gz: it has the same content as trace.trace.json\n"));
}

TEST_F(FrameworkChangesTest, ReadsNewElementsOfGrowingFile) {
  MakeSource({}, true);
  Start();
  const std::string element = R"({"ph":"i","ts":)";
  Write(path_, "[" + element + "1},\n" + element + "2},\n", 1);
  Pass(2'000);
  Write(path_, "[" + element + "1},\n" + element + "2},\n" + element + "3},\n", 2);
  Pass(2'000);
  EndCapture();
  EXPECT_THAT(Chunks(), ElementsAre("trace.trace.json 0 2 end", "~2/trace.trace.json 0 1 end"));
  EXPECT_EQ(sink_.Events().size(), 3u);
}

TEST_F(FrameworkChangesTest, RestartedItDoesNotContinueWithOtherContent) {
  Write(path_, TraceText(0, 20'000, "]}", 0), 1);
  MakeSource({path_});
  Start();
  Pass(500);
  ASSERT_GT(sink_.entries.size(), 3u);
  sink_.entries[0].answered = sink_.entries[0].stored = true;
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  EXPECT_NE(cursors.at(0).sequence_mark, 0u);
  sink_ = RecordingSink();
  Write(path_, TraceText(50'000, 10'000, "]}", 1), 2);
  MakeSource({path_});
  Start(cursors);
  Pass(1'000);
  EndCapture();
  ASSERT_FALSE(sink_.entries.empty());
  const ChunkHeader& first = sink_.entries[0].chunk.header;
  EXPECT_EQ(first.stream.name, "trace.trace.json");
  EXPECT_TRUE(first.end_of_stream);
  EXPECT_EQ(first.event_count, 0u);
  ASSERT_EQ(first.losses.size(), 1u);
  EXPECT_TRUE(first.losses[0].events_unknown);
  EXPECT_THAT(first.losses[0].detail, HasSubstr("the file changed before all of it was read"));
  EXPECT_EQ(sink_.Events().size(), 10'000u);
  for (size_t i = 1; i < sink_.entries.size(); ++i) {
    EXPECT_EQ(sink_.entries[i].chunk.header.stream.name, "~2/trace.trace.json");
    EXPECT_EQ(sink_.entries[i].chunk.header.rank_evidence.at(0).worker_gid, 1);
  }
  // And once more: both are known by their contents.
  const std::vector<StreamCursor> both = sink_.Cursors();
  sink_ = RecordingSink();
  MakeSource({path_});
  Start(both);
  Pass(1'000);
  EXPECT_THAT(Chunks(), IsEmpty());
}

TEST_F(FrameworkChangesTest, CountsFilesBeyondLimit) {
  constexpr uint64_t kFiles = limits::kFrameworkFilesPerCaptureMax + 104;
  MakeSource({}, true);
  Start();
  std::filesystem::create_directory(watched_ + "/checkpoints");
  for (int i = 0; i < 300; ++i) {
    std::ofstream(fmt::format("{}/checkpoints/shard-{}.pt", watched_, i));
    std::ofstream(fmt::format("{}/checkpoints/{}.json", watched_, i)) << "{}";
  }
  for (uint64_t i = 0; i < kFiles; ++i) {
    std::ofstream(fmt::format("{}/worker{}.pt.trace.json", watched_, i))
        << fmt::format(R"([{{"ph":"i","ts":{}}}])", i);
  }
  Pass(5'000);
  EndCapture();
  EXPECT_EQ(status().events_stored, limits::kFrameworkFilesPerCaptureMax);
  EXPECT_EQ(Remarked(RemarkKind::kTooManyFiles), 104u);
  EXPECT_EQ(Remarked(RemarkKind::kNoTrace), 600u);
  EXPECT_THAT(DetailsOf(RemarkKind::kNoTrace), HasSubstr("300 with names other than"));
  EXPECT_THAT(DetailsOf(RemarkKind::kNoTrace), HasSubstr("checkpoints/0.json: JSON without"));
}

TEST_F(FrameworkChangesTest, DetectsTraceByContentAndReportsOthers) {
  MakeSource({}, true);
  Start();
  Write(watched_ + "/libkineto_activities_4100.json", TraceText(0, 1), 1);
  WriteGzip(watched_ + "/rank-0.json.gz", TraceText(10, 1));
  Write(watched_ + "/config.json", R"({"model_type":"llama"})", 1);
  Write(watched_ + "/broken.trace.json", "<html>", 1);
  Write(watched_ + "/notes.txt", "hello", 1);
  std::filesystem::create_symlink("/etc/hostname", watched_ + "/link.trace.json");
  Pass(2'000);
  EndCapture();
  EXPECT_THAT(Chunks(), UnorderedElementsAre("broken.trace.json 0 0 end",
                                             "libkineto_activities_4100.json 0 1 end",
                                             "rank-0.json.gz 0 1 end"));
  EXPECT_EQ(Remarked(RemarkKind::kNoTrace), 2u);
  EXPECT_THAT(DetailsOf(RemarkKind::kNoTrace), HasSubstr("config.json: JSON without trace events"));
  EXPECT_EQ(Remarked(RemarkKind::kFilePassedOver), 1u);
  EXPECT_THAT(DetailsOf(RemarkKind::kFilePassedOver), HasSubstr("symbolic links below"));
  EXPECT_EQ(sink_.Losses().size(), 1u);
}

// One stream, step by step.
class ChangingStreamTest : public FrameworkChangesTest {
 protected:
  void BeginToRead() {
    stream_->Read(
        std::make_unique<StreamWriter>(
            CaptureId(), StreamIdentity{.kind = StreamKind::kFramework, .name = "trace.trace.json"},
            clock_, sink_, metrics_),
        0);
  }
  void ScanAll() {
    while (stream_->state() == TraceFileStream::State::kScanning) stream_->Step(shapes_);
  }
  void StepUntilEventsAreRead() {
    ScanAll();
    BeginToRead();
    while (stream_->counts().read == 0) stream_->Step(shapes_);
  }
  void StepToTheEnd() {
    for (int i = 0; i < 10'000 && stream_->works(); ++i) stream_->Step(shapes_);
    EXPECT_EQ(stream_->state(), TraceFileStream::State::kEnded);
  }
  void Open() { stream_ = std::make_unique<TraceFileStream>(path_); }

  static constexpr int kEvents = 20'000;
  ShapeCache shapes_;
  std::unique_ptr<TraceFileStream> stream_;
};

TEST_F(ChangingStreamTest, OverwrittenWhileItIsReadItEndsWithoutTheNewEvents) {
  Write(path_, TraceText(10'000, kEvents, "]}", 0));
  Open();
  StepUntilEventsAreRead();
  OverwriteSecretly(path_, TraceText(40'000, kEvents, "]}", 1));
  StepToTheEnd();
  EXPECT_TRUE(stream_->has_changed());
  const std::vector<std::string> events = sink_.Events();
  EXPECT_LT(events.size(), static_cast<size_t>(kEvents));
  for (const std::string& event : events) EXPECT_THAT(event, HasSubstr("\"name\":\"n1"));
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("its content changed while it was read"));
}

TEST_F(ChangingStreamTest, ReplacedOrRenamedWhileItIsReadItIsReadToItsEnd) {
  Write(path_, TraceText(0, kEvents, "]}", 0));
  Open();
  StepUntilEventsAreRead();
  const std::string other = watched_ + "/other";
  Write(other, TraceText(40'000, kEvents, "]}", 1));
  std::filesystem::rename(other, path_);
  StepToTheEnd();
  EXPECT_FALSE(stream_->has_changed());
  EXPECT_EQ(sink_.Events().size(), static_cast<size_t>(kEvents));
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(ChangingStreamTest, AppendedToWhileItIsReadItIsReadAsItWas) {
  std::string text = TraceText(0, kEvents, "");
  Write(path_, text);
  Open();
  StepUntilEventsAreRead();
  std::ofstream(path_, std::ios::app) << R"(,{"ph":"i","ts":7})";
  StepToTheEnd();
  EXPECT_FALSE(stream_->has_changed());
  EXPECT_EQ(sink_.Events().size(), static_cast<size_t>(kEvents));
}

TEST_F(ChangingStreamTest, CutWhileItIsReadTheRestIsLost) {
  Write(path_, TraceText(0, kEvents));
  Open();
  StepUntilEventsAreRead();
  std::filesystem::resize_file(path_, 100'000);
  StepToTheEnd();
  EXPECT_TRUE(stream_->has_changed());
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
}

TEST_F(ChangingStreamTest, FileChangedDuringScanIsNotRead) {
  Write(path_, TraceText(0, 200'000));
  Open();
  stream_->Step(shapes_);
  stream_->Step(shapes_);
  ASSERT_EQ(stream_->state(), TraceFileStream::State::kScanning);
  std::filesystem::resize_file(path_, 100'000);
  ScanAll();
  EXPECT_EQ(stream_->state(), TraceFileStream::State::kChanged);
}

TEST_F(ChangingStreamTest, OtherContentBetweenTheTwoReadingsIsNoticed) {
  Write(path_, TraceText(10'000, 100, "]}", 0));
  Open();
  ScanAll();
  OverwriteSecretly(path_, TraceText(40'000, 100, "]}", 1));
  BeginToRead();
  StepToTheEnd();
  EXPECT_TRUE(stream_->has_changed());
  EXPECT_THAT(sink_.Events(), IsEmpty());
  EXPECT_EQ(sink_.Losses().size(), 1u);
}

}  // namespace
}  // namespace neurontrace
