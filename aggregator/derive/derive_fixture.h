// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// A capture in memory, written event by event, and read batch by batch.
class DeriveTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBase = 1'750'000'000'000'000'000u;
  static constexpr uint64_t kMs = 1'000'000;

  static StreamIdentity Core(const std::string& instance, uint32_t pid, uint32_t nc_idx) {
    return {.agent_id = "agent-" + instance,
            .worker = {instance, "boot", pid, 1, ""},
            .kind = StreamKind::kNeuronCore,
            .nc_idx = nc_idx};
  }
  static StreamIdentity Framework(const std::string& instance, uint32_t pid) {
    return {.agent_id = "agent-" + instance,
            .worker = {instance, "boot", pid, 0, ""},
            .kind = StreamKind::kFramework,
            .nc_idx = limits::kNoNcIdx,
            .name = "rank.pt.trace.json"};
  }
  static std::vector<RankEvidence> Rank(int64_t gid, int64_t world_size) {
    return {{RankSource::kCommunicator, gid, world_size, "test"}};
  }
  // The map of a clock that is right to this bound.
  static ClockMap BoundedClock(uint64_t bound_ns) {
    return *ClockMap::FromPieces({{kBase, kBase, 0, bound_ns}});
  }

  // A new stream, and the script that writes its events.
  uint32_t AddStream(StreamIdentity identity, std::vector<RankEvidence> evidence = {}) {
    scripts_.push_back(std::make_unique<Script>());
    return source_.AddStream(std::move(identity), std::move(evidence));
  }
  EventScript& script(uint32_t stream) { return scripts_[stream]->events; }
  // What was written so far becomes a chunk: what follows is in another.
  void CloseChunk(uint32_t stream) { source_.AddChunk(stream, scripts_[stream]->builder); }

  void Running(uint32_t stream, uint64_t exec_id, uint64_t core, uint64_t start_ns,
               uint64_t end_ns) {
    script(stream).Span("nc_exec_running", start_ns, end_ns, next_tracking_id_++, 7,
                        {{"device_core_idx", core}, {"exec_id", exec_id}});
  }
  EventScript::Attributes Operation(uint64_t exec_id, uint64_t op_id, uint64_t gid) {
    return {{"gid", gid}, {"op_id", op_id}, {"exec_id", exec_id}, {"algorithm", "ring"}};
  }
  void Collects(uint32_t stream, const EventScript::Attributes& about, uint64_t start_ns,
                uint64_t end_ns) {
    script(stream).Span("cc_running", start_ns, end_ns, next_tracking_id_++, 7, about);
  }

  // Reads it all in batches of about so many records, and calls `take` for each, after `begin` with
  // the streams.
  template <typename Begin, typename Take>
  void Read(Begin begin, Take take, TimelineOptions options = {}, size_t batch_records = 4) {
    for (uint32_t i = 0; i < scripts_.size(); ++i) {
      if (scripts_[i]->builder.event_count() > 0) CloseChunk(i);
    }
    options.batch_records_target = batch_records;
    auto reader = TimelineReader::Open(source_, std::move(options));
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    begin(*reader_);
    TimelineBatch batch;
    while (true) {
      const auto more = reader_->Next(batch);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) return;
      take(batch);
    }
  }

  FakeChunkSource source_;
  std::unique_ptr<TimelineReader> reader_;  // what Read made, for the streams that finders refer to
  uint64_t next_tracking_id_ = 1;

 private:
  struct Script {
    EventChunkBuilder builder;
    EventScript events{builder};
  };
  std::vector<std::unique_ptr<Script>> scripts_;
};

}  // namespace neurontrace
