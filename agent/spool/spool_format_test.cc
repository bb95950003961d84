// SPDX-License-Identifier: Apache-2.0
// The bytes of the spool's files: there and back, damaged at every byte, and of later versions.
#include "agent/spool/spool_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "agent/spool/segment_reader.h"
#include "lib/base/crc32c.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/fuzz_seed.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaptureId Capture() { return *CaptureId::FromBytes("0123456789abcdef"); }

SegmentHeader Header() {
  SegmentHeader header;
  header.capture_id = Capture();
  header.segment = 17;
  header.salt = 0x1122334455667788;
  header.agent_id = "agent-1";
  header.bytes = EncodeSegmentHeader(header).size();
  return header;
}

std::string Record(const std::string& chunk_header, const std::string& columns,
                   uint32_t batch_offset, uint32_t kind = kRecordKindChunk) {
  RecordHead head;
  head.kind = kind;
  head.header_bytes = static_cast<uint32_t>(chunk_header.size());
  head.columns_bytes = static_cast<uint32_t>(columns.size());
  head.chunk_crc32c = ExtendCrc32c(Crc32c(chunk_header.data(), chunk_header.size()), columns.data(),
                                   columns.size());
  head.batch_offset = batch_offset;
  return EncodeRecordHead(head, chunk_header, Header().salt) + chunk_header + columns;
}

// The chunk headers found, in order.
std::vector<std::string> Found(const std::string& segment, SegmentSummary* summary = nullptr) {
  FakeFileSystem disk;
  disk.SetContents("/s", segment);
  const auto file = disk.OpenForReading("/s");
  std::vector<std::string> found;
  const auto walked = ReadSegment(
      **file, [&](const FoundRecord& record) { found.emplace_back(record.chunk_header); });
  EXPECT_TRUE(walked.ok()) << walked.status();
  if (summary != nullptr && walked.ok()) *summary = *walked;
  return found;
}

SpoolCursor Cursor() {
  SpoolCursor cursor;
  cursor.synced_segment = 9;
  cursor.synced_bytes = 1'000'000;
  StreamIdentity stream;
  stream.agent_id = "agent-1";
  stream.worker.instance_id = "i-1";
  stream.kind = StreamKind::kNeuronCore;
  cursor.streams[stream] = {.next_sequence = 5, .gone = std::nullopt};
  stream.nc_idx = 3;
  cursor.streams[stream] = {.next_sequence = 7,
                            .gone = PrecedingGap{LossPlace::kSpool, LossReason::kOverwritten}};
  StreamCursor behind{.stream = stream, .next_sequence = 9, .source_position = 77};
  behind.events_before = 1'000;
  behind.losses_before.push_back(
      {.place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = 3});
  cursor.streams[stream].behind = behind;
  return cursor;
}

TEST(SegmentHeaderTest, RoundTrips) {
  const std::string bytes = EncodeSegmentHeader(Header());
  const auto back = DecodeSegmentHeader(bytes + "and records");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Header());
}

TEST(SegmentHeaderTest, DamageAtAnyByteIsSeen) {
  const std::string good = EncodeSegmentHeader(Header());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(DecodeSegmentHeader(bad).ok()) << at;
    EXPECT_FALSE(DecodeSegmentHeader(good.substr(0, at)).ok()) << at;
  }
}

TEST(SegmentHeaderTest, ReportsLaterVersion) {
  std::string bytes = EncodeSegmentHeader(Header());
  bytes[8] = 2;
  const auto header = DecodeSegmentHeader(bytes);
  EXPECT_EQ(header.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(header.status().message()), HasSubstr("later version"));
}

TEST(SegmentReaderTest, FindsRecordsAndSkipsUnknownKinds) {
  const std::string begin = EncodeSegmentHeader(Header());
  const auto first = static_cast<uint32_t>(begin.size());
  const std::string one = Record("one", std::string(100, 'x'), first);
  SegmentSummary summary;
  EXPECT_THAT(Found(begin + one + Record("other", "?", first, 99) +
                        Record("two", "", first + static_cast<uint32_t>(one.size())),
                    &summary),
              ElementsAre("one", "two"));
  EXPECT_EQ(summary.unknown_records, 1u);
  EXPECT_EQ(summary.damaged_places, 0u);
  EXPECT_EQ(summary.synced_bytes, begin.size() + one.size());
}

TEST(SegmentReaderTest, TruncatedAnywhereYieldsCompleteRecords) {
  const std::string begin = EncodeSegmentHeader(Header());
  std::string segment = begin;
  std::vector<size_t> ends;
  for (int i = 0; i < 3; ++i) {
    segment += Record("head" + std::to_string(i), std::string(40, 'c'), 0);
    ends.push_back(segment.size());
  }
  for (size_t size = begin.size(); size <= segment.size(); ++size) {
    const auto whole =
        std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= size; });
    SegmentSummary summary;
    EXPECT_EQ(Found(segment.substr(0, size), &summary).size(), static_cast<size_t>(whole)) << size;
    EXPECT_EQ(summary.damaged_places, 0u) << size;
  }
}

TEST(SegmentReaderTest, DamageCostsTheRecordItHit) {
  const std::string begin = EncodeSegmentHeader(Header());
  std::string segment = begin;
  std::vector<size_t> starts;
  for (int i = 0; i < 3; ++i) {
    starts.push_back(segment.size());
    segment += Record("head" + std::to_string(i), std::string(40, 'c'), 0);
  }
  for (size_t at = starts[1]; at < starts[1] + kRecordHeadBytes + 5; ++at) {
    std::string bad = segment;
    bad[at] = static_cast<char>(bad[at] ^ 0x01);
    SegmentSummary summary;
    EXPECT_THAT(Found(bad, &summary), ElementsAre("head0", "head2")) << at;
    EXPECT_EQ(summary.damaged_places, 1u) << at;
    EXPECT_EQ(summary.damaged_bytes, starts[2] - starts[1]) << at;
  }
  // In its columns: the record is found, and told apart by its checksum.
  segment[starts[1] + kRecordHeadBytes + 5] ^= 1;
  EXPECT_EQ(Found(segment).size(), 3u);
}

TEST(SegmentReaderTest, ChunkBytesAreNotMistakenForRecord) {
  // What a worker could make a chunk hold: a record as another segment has it.
  SegmentHeader other = Header();
  other.salt ^= 1;
  RecordHead head;
  head.header_bytes = 6;
  const std::string forged = EncodeRecordHead(head, "forged", other.salt) + "forged";
  std::string segment = EncodeSegmentHeader(Header()) + Record("real", forged + forged, 0);
  segment[EncodeSegmentHeader(Header()).size() + 6] ^= 1;  // so that records are looked for inside
  EXPECT_THAT(Found(segment), ElementsAre());
}

TEST(SegmentReaderTest, SegmentFullOfFalseRecordsTakesBoundedWork) {
  std::string segment = EncodeSegmentHeader(Header());
  for (int i = 0; i < 200'000; ++i) segment += kRecordMagic;
  SegmentSummary summary;
  EXPECT_THAT(Found(segment, &summary), ElementsAre());
  EXPECT_GT(summary.torn_bytes, 700'000u);
}

TEST(SpoolCursorTest, RoundTrips) {
  const auto back = DecodeSpoolCursor(EncodeSpoolCursor(Cursor()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Cursor());
}

TEST(SpoolCursorTest, DamageAtAnyByteIsSeen) {
  const std::string good = EncodeSpoolCursor(Cursor());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(DecodeSpoolCursor(bad).ok()) << at;
    EXPECT_FALSE(DecodeSpoolCursor(good.substr(0, at)).ok()) << at;
  }
  EXPECT_FALSE(DecodeSpoolCursor(good + "x").ok());
}

SpoolRunning Running() {
  SpoolRunning running{"boot-1", {}};
  running.captures[Capture()] = {
      .name = "all", .selection = {.neuron_cores = {1, 2}}, .timing = {.duration_ns = 5}};
  running.captures[*CaptureId::FromBytes("fedcba9876543210")] = {};
  return running;
}

TEST(SpoolRunningTest, RoundTrips) {
  const auto back = DecodeSpoolRunning(EncodeSpoolRunning(Running()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Running());
}

TEST(SpoolRunningTest, DamageAtAnyByteIsSeen) {
  const std::string good = EncodeSpoolRunning(Running());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(DecodeSpoolRunning(bad).ok()) << at;
    EXPECT_FALSE(DecodeSpoolRunning(good.substr(0, at)).ok()) << at;
  }
  EXPECT_FALSE(DecodeSpoolRunning(good + "x").ok());
}

// `good` with one byte of a text changed and the checksum made right, as a hostile disk has it.
std::string WithByte(std::string good, std::string_view text, char byte) {
  const size_t at = good.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  good[at] = byte;
  const size_t checked = good.size() - sizeof(uint32_t);
  const uint32_t crc = Crc32c(good.data(), checked);
  std::memcpy(good.data() + checked, &crc, sizeof crc);
  return good;
}

// Found by fuzzing: words for people were held as they came, and written without their control
// characters, so that the file's second reading was not its first.
TEST(SpoolFilesTest, RoundTripsHostileText) {
  SpoolCursor cursor = Cursor();
  cursor.streams.rbegin()->second.behind->losses_before[0].detail = "words";
  const auto read = DecodeSpoolCursor(WithByte(EncodeSpoolCursor(cursor), "words", '\n'));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->streams.rbegin()->second.behind->losses_before[0].detail, "?ords");
  EXPECT_EQ(*DecodeSpoolCursor(EncodeSpoolCursor(*read)), *read);

  SpoolRunning running = Running();
  running.captures[Capture()].cause = "words";
  running.captures[Capture()].filter.event_types = {"nrt_execute"};
  const std::string good = EncodeSpoolRunning(running);
  const auto again = DecodeSpoolRunning(WithByte(good, "words", '\x1b'));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->captures.at(Capture()).cause, "?ords");
  EXPECT_EQ(*DecodeSpoolRunning(EncodeSpoolRunning(*again)), *again);
  EXPECT_FALSE(DecodeSpoolRunning(WithByte(good, "nrt_execute", '\x7f')).ok());
}

// Not a test: see lib/base/fuzz_seed.h.
TEST(SpoolFilesTest, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, const std::string& bytes) {
    WriteFuzzSeed("spool_files_fuzzer", name, bytes);
  };
  SpoolCursor cursor = Cursor();
  cursor.streams.rbegin()->second.behind->losses_before[0].detail = "words";
  write("cursor_behind", EncodeSpoolCursor(cursor));
  write("cursor_words", WithByte(EncodeSpoolCursor(cursor), "words", '\n'));
  SpoolRunning running = Running();
  CaptureSpec& spec = running.captures[Capture()];
  spec.selection.job = "job-1";
  spec.selection.instance_ids = {"i-1"};
  spec.filter.event_types = {"nrt_execute", "^hardware"};
  spec.selection.job_facts = {{"slurm", "4711"}};
  spec.selection.worker_gids = {{0, 7}};
  spec.labels = {{"ticket", "T-1"}};
  spec.cause = "words";
  write("running", EncodeSpoolRunning(running));
  write("running_words", WithByte(EncodeSpoolRunning(running), "words", '\x1b'));
  write("running_types", WithByte(EncodeSpoolRunning(running), "nrt_execute", '\x7f'));
}

TEST(SpoolAggregatorTest, RoundTripsOrReportsDamage) {
  const std::string good = EncodeSpoolAggregator("agg-1");
  EXPECT_EQ(*DecodeSpoolAggregator(good), "agg-1");
  for (const std::string& id : {std::string("a\x1b[2J"), std::string("\xff"),
                                std::string(limits::kIdentityStringBytesMax + 1, 'x')}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeSpoolAggregator(EncodeSpoolAggregator(id)).status()));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(DecodeSpoolAggregator(bad).ok()) << at;
    EXPECT_FALSE(DecodeSpoolAggregator(good.substr(0, at)).ok()) << at;
  }
}

TEST(SegmentNameTest, OnlyNamesOfSegmentsAreNumbers) {
  EXPECT_EQ(SegmentName(17), "00000017.seg");
  EXPECT_EQ(SegmentName(1'234'567'890), "1234567890.seg");
  EXPECT_EQ(ParseSegmentName("00000017.seg"), 17u);
  EXPECT_EQ(ParseSegmentName("1234567890.seg"), 1'234'567'890u);
  for (const char* name : {"cursor", "17.seg", "00000000.seg", "0000001x.seg", "00000017.seg.new",
                           "99999999999999999999999.seg", ""}) {
    EXPECT_EQ(ParseSegmentName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace neurontrace
