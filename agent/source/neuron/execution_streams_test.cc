// SPDX-License-Identifier: Apache-2.0
// Goal: what a capture by execution keeps of a worker's events reaches the store once, over a
// restart of the agent too, and what it passes over is no loss.
#include "agent/source/neuron/capture/capture_streams.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

class ExecutionStreamsTest : public ::testing::Test {
 protected:
  ExecutionStreamsTest() { Make(); }

  void Make(std::vector<GidRange> gids = {}) {
    streams_ = std::make_unique<CaptureStreams>(capture_context_, capture_, worker_,
                                                EventSelection{{}, {}, gids.empty(), gids});
  }
  // Events of one core, each "execution" or, below 0, one without.
  void Document(uint32_t core, std::vector<int64_t> executions) {
    std::string json = R"({"events":[)";
    for (const int64_t execution : executions) {
      if (json.back() == '}') json += ',';
      json += R"({"event_type":"kbl_exec_pre","phase":"instant","nc_idx":)" + std::to_string(core) +
              R"(,"nc_local_id":)" + std::to_string(number_) + R"(,"data":{)" +
              (execution < 0 ? "" : R"("exec_id":)" + std::to_string(execution)) +
              R"(},"timestamp_ns":)" + std::to_string(number_ + 1) + "}";
      ++number_;
    }
    DocumentText(core, json + R"(],"data_version":2})");
  }
  void DocumentText(uint32_t core, std::string json) {
    written_.push_back({core, json});
    Read(written_.back(), position_ += 1'000);
  }
  void Read(const std::pair<uint32_t, std::string>& document, uint64_t position) {
    std::string padded = document.second;
    padded.append(NrtEventDecoder::kPaddingBytes, '\0');
    TapRecord record;
    record.position = position;
    record.nc_idx = document.first;
    record.host_realtime_ns = 5;
    record.payload = padded.data();
    record.payload_bytes = document.second.size();
    streams_->BeginDocument(record);
    const NrtDecodeOutcome outcome =
        decoder_.Decode(padded.data(), document.second.size(), 5, *streams_);
    streams_->EndDocument(record, outcome);
  }
  uint64_t Events() const {
    uint64_t events = 0;
    for (const auto& entry : sink_.entries) events += entry.chunk.header.event_count;
    return events;
  }

  const CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
  const WorkerIdentity worker_{.instance_id = "i-0abc", .boot_id = "boot", .pid = 7};
  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  const StreamSetup capture_context_{"agent", clock_, sink_, metrics_};
  NrtEventDecoder decoder_;
  std::unique_ptr<CaptureStreams> streams_;
  std::vector<std::pair<uint32_t, std::string>> written_;
  uint64_t number_ = 1;
  uint64_t position_ = 0;
};

TEST_F(ExecutionStreamsTest, HoldsBackUntilFirstExecutionAndReportsProgress) {
  Document(0, {-1, 40, -1, 41});
  EXPECT_EQ(streams_->executions().newest, 41u);
  EXPECT_EQ(streams_->executions().first, 0u);
  EXPECT_EQ(streams_->first_undurable_position(), std::nullopt);  // nothing of it is kept
  streams_->SetExecutions({43, 44});
  Document(0, {42, -1, 43, -1, 44, -1, 45, -1});
  streams_->End(position_);
  EXPECT_EQ(Events(), 4u);
  EXPECT_EQ(streams_->executions().first, 43u);
  EXPECT_EQ(streams_->executions().newest, 45u);
  EXPECT_EQ(streams_->counts().read, 4u);
  EXPECT_EQ(metrics_.events_filtered.load(), 8u);
}

TEST_F(ExecutionStreamsTest, ACoreThatStartsLaterHasItsOwnBeginning) {
  streams_->SetExecutions({10, 0});
  Document(0, {10, 11});
  Document(1, {-1, 2});
  Document(1, {9, 10, -1});
  streams_->End(position_);
  EXPECT_EQ(Events(), 4u);
  EXPECT_EQ(streams_->executions().first, 10u);
}

TEST_F(ExecutionStreamsTest, HolesBeforeTheFirstAndBehindTheLastAreNoLoss) {
  streams_->SetExecutions({10, 11});
  Document(0, {1});
  number_ += 100;
  Document(0, {9, 10});
  number_ += 7;
  Document(0, {11, 12});
  number_ += 50;
  Document(0, {20});
  streams_->End(position_);
  EXPECT_EQ(Events(), 2u);
  EXPECT_EQ(streams_->counts().lost, 7u);
}

TEST_F(ExecutionStreamsTest, EventsWithoutACoreFollowTheCores) {
  const std::string none =
      R"({"events":[{"event_type":"x","phase":"instant","data":{},"timestamp_ns":1}]})";
  DocumentText(kTapNoCore, none);
  streams_->SetExecutions({10, 10});
  DocumentText(kTapNoCore, none);
  Document(0, {10});
  DocumentText(kTapNoCore, none);
  Document(0, {11});
  DocumentText(kTapNoCore, none);
  streams_->End(position_);
  EXPECT_EQ(Events(), 2u);
}

// The agent is killed with a part of a document stored: wherever that part ends, the rest comes
// once, though the agent that reads it again has not seen what opened the core.
TEST_F(ExecutionStreamsTest, StoresOnceWhereverAgentWasKilled) {
  for (uint32_t kept = 1; kept < 8; ++kept) {
    sink_.entries.clear();
    written_.clear();
    number_ = 1;
    position_ = 0;
    Make();
    streams_->SetExecutions({10, 0});
    Document(0, {8, -1, 9});
    // Passed over: 3; then 5 rows, one passed over, 2 rows.
    Document(0, {-1, 9, -1, 10, -1, 10, -1, 11, 9, 11, -1});
    const uint64_t opening = position_;
    StreamCursor cursor{.stream = {.agent_id = "agent",
                                   .worker = worker_,
                                   .kind = StreamKind::kNeuronCore,
                                   .nc_idx = 0},
                        .next_sequence = 1,
                        .source_position = opening,
                        .source_skip = 3 + kept + (kept > 5 ? 1 : 0),
                        .events_before = kept};
    sink_.entries.clear();
    Make();
    streams_->Resume({cursor});
    streams_->SetExecutions({10, 0});
    Read(written_[1], opening);
    streams_->End(position_ + 1'000);
    EXPECT_EQ(Events(), 7 - kept) << kept;
    EXPECT_EQ(streams_->counts().lost, 0u) << kept;
  }
}

TEST_F(ExecutionStreamsTest, CoresOfOtherRanksArePassedOverUntilTheirRankIsKnown) {
  Make({{32, 33}});
  const auto rank = [](int64_t gid) {
    return std::vector<RankEvidence>{{RankSource::kCommunicator, gid, 64, ""}};
  };
  streams_->SetRankEvidence(0, rank(32));
  streams_->SetRankEvidence(1, rank(34));
  Document(0, {1, 2});
  Document(1, {1, 2, 3});
  Document(2, {1});
  streams_->SetRankEvidence(2, rank(33));
  Document(2, {2, 3, 4});
  streams_->End(position_);
  EXPECT_EQ(Events(), 5u);
}

// An agent that comes back knows of a core that it was selected before it knows which rank it is.
TEST_F(ExecutionStreamsTest, ACoreWithStoredEventsIsOfTheRanksUntilItsRankIsKnown) {
  Make({{32, 33}});
  streams_->Resume({{.stream = {.agent_id = "agent",
                                .worker = worker_,
                                .kind = StreamKind::kNeuronCore,
                                .nc_idx = 0},
                     .next_sequence = 1,
                     .source_position = position_,
                     .events_before = 5}});
  Document(0, {1, 2});
  Document(1, {1, 2, 3});
  streams_->SetRankEvidence(0, {{RankSource::kEvent, 31, 64, ""}});
  Document(0, {3});
  streams_->End(position_);
  EXPECT_EQ(Events(), 2u);
}

}  // namespace
}  // namespace neurontrace
