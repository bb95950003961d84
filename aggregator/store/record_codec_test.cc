// SPDX-License-Identifier: Apache-2.0
// Every value reads back as it was written, and nothing else is taken for one: each value is cut at
// every length, and has its version changed.
#include "aggregator/store/record_codec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/store_test_support.h"
#include "aggregator/store/stored_message.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/fuzz_seed.h"
#include "lib/base/sha256.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Cut anywhere, or of another version, it is no value.
template <typename Decode>
void ExpectNothingElseDecodes(const std::string& value, Decode decode) {
  for (size_t length = 0; length < value.size(); ++length) {
    EXPECT_EQ(decode(value.substr(0, length)).code(), absl::StatusCode::kDataLoss) << length;
  }
  EXPECT_EQ(decode(value + "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(decode("\x7f" + value.substr(1)).code(), absl::StatusCode::kDataLoss);
}

CaptureRecord FullCapture() {
  CaptureRecord record = TestCapture(1);
  record.spec = {
      .name = "n",
      .mode = CaptureMode::kStream,
      .selection = {.job = "llama",
                    .job_facts = {{"slurm", "4711"}},
                    .instance_ids = {"i-1", "i-2"},
                    .neuron_cores = {0, 200},
                    .worker_gids = {{0, 7}}},
      .filter = {.event_types = {"hardware", "^cc_running"},
                 .all_events = true,
                 .include_neuron = true,
                 .include_framework = false},
      .timing = {.duration_ns = 5'000'000'000, .last_ns = 10, .flight_recorder = TestCapture(2).id},
      .conditions = {.require_percent = 90,
                     .at_next_execution = true,
                     .at_execution = 5,
                     .executions = 6},
      .retention = {.duration_ns = 8, .bytes = 9, .ring_events_per_core = 1 << 17},
      .budget = {.core_ppm = 11, .bytes_per_second = 12, .stored_bytes_max = 7},
      .labels = {{"ticket", "T-1"}},
      .watch = true,
      .cause = "slow"};
  record.state = CaptureState::kIncomplete;
  record.stopped_realtime_ns = 7;
  record.ended_realtime_ns = 8;
  record.agents = {{"agent-a", "i-1", 2, true, true, false},
                   {"agent-b", "i-2", 0, false, false, true}};
  record.workers = {{.capture_id = record.id,
                     .worker = TestStream(0).worker,
                     .state = CaptureWorkerState::kLost,
                     .detail = "killed",
                     .events_read = 10,
                     .events_stored = 9,
                     .events_lost = 1,
                     .events_lost_unknown = true,
                     .framework = true,
                     .streams = 4,
                     .obstacle = CaptureObstacle::kEnded,
                     .bytes_read = 1,
                     .begun_realtime_ns = 2,
                     .begin_offset_ns = -3,
                     .begun_as_planned = true,
                     .first_execution = 4,
                     .highest_first_execution = 7,
                     .lowest_newest_execution = 8,
                     .newest_execution = 5,
                     .cores_without_execution = 9,
                     .reaches_back_ns = 6,
                     .joined_late = true}};
  record.begin =
      CaptureBegin{.reference_ns = 1, .bound_ns = 2, .first_execution = 3, .last_execution = 4};
  record.armed_realtime_ns = 5;
  record.warnings = {"one", "two"};
  record.agents[1].given_up = true;
  record.agents[1].away_since_realtime_ns = 9;
  record.workers[0].worker_state = WorkerState::kBusyOtherProfiler;
  record.non_participants = {{.worker = TestStream(1).worker,
                              .agent_id = "agent-b",
                              .reason = NonParticipantReason::kNotSelected,
                              .state = WorkerState::kClosed,
                              .detail = "another job"}};
  record.end_warnings = {"three"};
  record.starred = true;
  record.tags = {"baseline", "needs review"};
  return record;
}

StreamRecord FullStream() {
  StreamRecord record;
  record.number = 3;
  record.identity = TestStream(2);
  record.identity.worker.container_id = "c0ffee";
  record.identity.name = "worker0.pt.trace.json";
  record.next_sequence = 1ull << 40;
  record.source_position = UINT64_MAX;
  record.source_skip = UINT32_MAX;
  record.ended = true;
  record.chunks = 5;
  record.events = 6;
  record.bytes = 7;
  record.first_timestamp_ns = 8;
  record.last_timestamp_ns = 9;
  record.chunk_span_max_ns = 4;
  record.losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 12, true, 1, 2, "wrapped"}};
  record.evidence = {{RankSource::kCommunicator, 35, 64, "nrt_build_global_comm"}};
  record.captured = 11;
  record.told = {{.place = LossPlace::kRuntimeRing, .events = 12}};
  record.canary_realtime_ns = 21;
  record.canary_sequence = 3;
  record.gaps = {{.place = LossPlace::kRuntimeRing,
                  .events = 12,
                  .first_timestamp_ns = 1,
                  .last_timestamp_ns = 2}};
  record.gaps_count = 300;
  record.gaps_sum_ns = 1;
  record.gaps_end_ns = 2;
  record.sequence_mark = 300;
  record.first_sequence = 400;
  record.expired_chunks = 300;
  record.expired_bytes = 500;
  record.suspensions = {{FullCapture().id, 300, 400}, {{}, 500, 600}};
  record.suspensions_count = 700;
  return record;
}

TEST(RecordCodec, CaptureReadsBack) {
  const CaptureRecord record = FullCapture();
  const std::string value = EncodeCaptureRecord(record);
  EXPECT_EQ(DecodeCaptureRecord(record.id, value).value(), record);
  CaptureRecord snapshot = record;  // does not begin with an execution
  snapshot.spec.mode = CaptureMode::kSnapshot;
  snapshot.spec.conditions.at_next_execution = false;
  snapshot.spec.conditions.at_execution = snapshot.spec.conditions.executions = 0;
  EXPECT_EQ(DecodeCaptureRecord(record.id, EncodeCaptureRecord(snapshot)).value(), snapshot);
  ExpectNothingElseDecodes(value, [&](const std::string& text) {
    return DecodeCaptureRecord(record.id, text).status();
  });
}

TEST(RecordCodec, CaptureWithoutStarAndTagsIsThatOfAnEarlierVersion) {
  CaptureRecord record = FullCapture();
  const std::string value = EncodeCaptureRecord(record);
  v1::StoredCapture message;
  ASSERT_TRUE(message.ParseFromString(value));
  message.clear_starred();
  message.clear_tags();
  record.starred = false;
  record.tags.clear();
  EXPECT_EQ(EncodeCaptureRecord(record), message.SerializeAsString());  // nothing else is written
  EXPECT_EQ(DecodeCaptureRecord(record.id, message.SerializeAsString()).value(), record);
}

TEST(RecordCodec, StreamReadsBack) {
  const StreamRecord record = FullStream();
  const std::string value = EncodeStreamRecord(record);
  EXPECT_EQ(DecodeStreamRecord(3, value).value(), record);
  ExpectNothingElseDecodes(
      value, [](const std::string& text) { return DecodeStreamRecord(3, text).status(); });
}

AgentRecord FullAgent() {
  return {.info = {1, "agent-a", "0.1.0", "i-1", "imds", "boot", "host", "trn2.48xlarge"},
          .first_seen_realtime_ns = 1,
          .last_seen_realtime_ns = 2};
}

WorkerRecord FullWorker() {
  WorkerRecord worker;
  worker.info.identity = TestStream(0).worker;
  worker.info.state = WorkerState::kStreaming;
  worker.info.cores = {{.nc_idx = 1, .rank_evidence = {{RankSource::kTorchrun, -0, 8, "RANK=0"}}}};
  worker.info.pid_claimed = true;
  worker.info.warnings = {"w"};
  worker.info.job_facts = {{"label:team", "search"}, {"slurm", "4711"}};
  worker.agent_id = "agent-a";
  worker.last_seen_realtime_ns = 4;
  return worker;
}

TEST(RecordCodec, AgentAndWorkerReadBack) {
  const AgentRecord agent = FullAgent();
  EXPECT_EQ(DecodeAgentRecord(EncodeAgentRecord(agent)).value(), agent);
  ExpectNothingElseDecodes(EncodeAgentRecord(agent), [](const std::string& text) {
    return DecodeAgentRecord(text).status();
  });
  const WorkerRecord worker = FullWorker();
  EXPECT_EQ(DecodeWorkerRecord(EncodeWorkerRecord(worker)).value(), worker);
  ExpectNothingElseDecodes(EncodeWorkerRecord(worker), [](const std::string& text) {
    return DecodeWorkerRecord(text).status();
  });
}

TEST(RecordCodec, ReadsOrRejectsNewerRecords) {
  StreamRecord record = FullStream();
  record.remarks = {{.kind = static_cast<RemarkKind>(79), .count = 1, .details = {"of later"}}};
  record.evidence[0].source = static_cast<RankSource>(31);
  StreamRecord read = DecodeStreamRecord(3, EncodeStreamRecord(record)).value();
  EXPECT_EQ(read.remarks, record.remarks);
  EXPECT_EQ(read.evidence[0].source, RankSource::kFrameworkFile);
  record.losses[0].reason = static_cast<LossReason>(8);
  EXPECT_EQ(DecodeStreamRecord(3, EncodeStreamRecord(record)).status().message(),
            "stream record 3: loss.reason has the unknown value 8");
  record.losses.clear();
  record.suspensions[0].end_ns = 1;
  EXPECT_EQ(DecodeStreamRecord(3, EncodeStreamRecord(record)).status().message(),
            "stream record 3: suspension.begin_ns 300 is later than end_ns 1");
  record.suspensions.clear();
  record.clock_domain = static_cast<ClockDomain>(3);
  EXPECT_EQ(DecodeStreamRecord(3, EncodeStreamRecord(record)).status().message(),
            "stream record 3: unknown clock domain 3");
  v1::StoredAgent newer;
  newer.set_version(2);
  EXPECT_EQ(DecodeAgentRecord(newer.SerializeAsString()).status().message(),
            "agent record: unknown version 2, this program reads 1");
}

TEST(RecordCodec, DoesNotStoreVolatileWorkerState) {
  WorkerRecord worker;
  worker.info.identity = TestStream(0).worker;
  worker.info.state = WorkerState::kIdle;
  WorkerRecord live = worker;
  live.info.event_types = {"nrt_execute"};
  live.info.tap_capture = FullCapture().id;
  EXPECT_EQ(DecodeWorkerRecord(EncodeWorkerRecord(live)).value(), worker);
}

// Not a test: see lib/base/fuzz_seed.h. What precedes a row is the family's number and the
// length of the key.
TEST(RecordCodec, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, char family, const std::string& row) {
    WriteFuzzSeed("store_rows_fuzzer", name, std::string{family, '\0'} + row);
  };
  write("capture", 0, EncodeCaptureRecord(FullCapture()));
  write("agent", 1, EncodeAgentRecord(FullAgent()));
  write("worker", 2, EncodeWorkerRecord(FullWorker()));
  write("stream", 3, EncodeStreamRecord(FullStream()));
  const ArtifactReference reference{
      .capture_id = TestCaptureId(1),
      .agent_id = "agent-a",
      .place = MakeArtifactPlace("i-1_pid_7", "1776672348756756905", "ntrace.pb").value(),
      .sha256 = std::string(kSha256Bytes, 's'),
      .bytes = 4};
  const std::string key = ReferenceKey(reference);
  WriteFuzzSeed("store_rows_fuzzer", "reference",
                std::string{5, static_cast<char>(key.size())} + key + EncodeReference(reference));
}

// What precedes a chunk and in its index reads back as it was written, and nothing else is
// taken for it.

class ChunkIndexValue : public ::testing::Test {
 protected:
  ChunkIndexValue() {
    header_.first_timestamp_ns = 1'000'000;
    header_.event_count = 4'096;
  }
  absl::Status Decode(const std::string& value) {
    return DecodeChunkIndexValue(value, entry_, &read_);
  }

  // As `of_stops_`, with one type that no stop has and in the order of the shapes.
  const ForeignStops stops_{{"nrt_execute", "cc_running", "nc_exec_running"},
                            {{2, 17, 1'000'001}, {1, 3, 1'000'001}, {2, UINT64_MAX, 2'000'000}},
                            true};
  const ForeignStops of_stops_{{"nc_exec_running", "cc_running"},
                               {{0, 17, 1'000'001}, {1, 3, 1'000'001}, {0, UINT64_MAX, 2'000'000}}};
  ChunkHeader header_;
  ChunkIndexEntry entry_;
  ForeignStops read_ = stops_;  // of the entry before
};

TEST_F(ChunkIndexValue, ReadsBackWithTypesAndForeignStops) {
  for (const ForeignStops& stops : {stops_, of_stops_, ForeignStops{}}) {
    const std::string value = EncodeChunkIndexValue(header_, 4'711, stops);
    EXPECT_EQ(value[0], 1);
    ASSERT_TRUE(Decode(value).ok());
    EXPECT_EQ(entry_.bytes, 4'711u);
    EXPECT_EQ(entry_.first_timestamp_ns, 1'000'000u);
    EXPECT_EQ(entry_.event_count, 4'096u);
    EXPECT_EQ(read_, stops);
    ExpectNothingElseDecodes(value, [this](const std::string& text) { return Decode(text); });
  }
}

TEST(ChunkFrameTest, ReadsBack) {
  const ChunkFrame frame{1, 2, 3, 4, 5, 6};
  const auto bytes = frame.Encode();
  const std::string value =
      fmt::format("{}headcolumns", std::string_view(bytes.data(), bytes.size()));
  const auto read = ChunkFrame::Decode(value);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->header_bytes, 4u);
  EXPECT_EQ(read->last_timestamp_ns, 6u);
  EXPECT_FALSE(ChunkFrame::Decode(value.substr(0, ChunkFrame::kBytes + 3)));
  EXPECT_FALSE(ChunkFrame::Decode("x" + value.substr(1)));
}

}  // namespace
}  // namespace neurontrace
