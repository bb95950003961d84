// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"
#include "aggregator/timeline/event_script.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {

// A running capture in a store in memory. One thread.
class StoredCaptureFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kStoredNs = 1'750'000'000'000'000'000u;

  StoredCaptureFixture() { Add(record_); }

  void Add(const CaptureRecord& record) {
    const absl::Status status = store_->captures().Put(record, true);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Stores what `script_` wrote as the next chunk of a core of the first capture. The core's rank
  // is 4 more than its index.
  void StoreChunk(uint32_t nc_idx) {
    ReceivedChunk chunk = FinishChunk(TestStream(nc_idx), sequences_[nc_idx]++);
    chunk.header.rank_evidence = {{RankSource::kCommunicator, nc_idx + 4, 8, "comm"}};
    ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
  }
  // The same as the only chunk of a framework's file whose times count from an unknown moment.
  void StoreOwnTimeChunk(const std::string& file) {
    StreamIdentity stream = TestStream(limits::kNoNcIdx);
    stream.kind = StreamKind::kFramework;
    stream.name = file;
    ReceivedChunk chunk = FinishChunk(stream, 0);
    chunk.header.clock_domain = ClockDomain::kOwn;
    ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
  }
  // The same as the only chunk of this stream.
  void StoreOnlyChunk(const StreamIdentity& stream) {
    ASSERT_EQ(PutOne(*store_, FinishChunk(stream, 0)).outcome, PutOutcome::kStored);
  }
  // Stores `count` chunks of a core, each with one span of 100 ns at the begin of a microsecond.
  void StoreSpans(uint32_t nc_idx, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at_ns = kStoredNs + i * 1'000;
      script_.Span("work", at_ns, at_ns + 100, i + 1);
      StoreChunk(nc_idx);
    }
  }

  // Stores a chunk of ten events that nobody can decode.
  void StoreDamagedChunk(uint32_t nc_idx) {
    ReceivedChunk chunk = TestChunk(1, TestStream(nc_idx), sequences_[nc_idx]++);
    chunk.header.first_timestamp_ns += kStoredNs;
    chunk.header.last_timestamp_ns += kStoredNs;
    ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
  }

  std::unique_ptr<Store> store_ = OpenInMemory();
  CaptureRecord record_ = TestCapture(1);
  EventChunkBuilder builder_;
  EventScript script_{builder_};

 private:
  // Returns what `script_` wrote as a chunk.
  ReceivedChunk FinishChunk(const StreamIdentity& stream, uint64_t sequence) {
    const EncodedColumns columns = builder_.Finish();
    DecodedChunk decoded;
    EXPECT_TRUE(decoded.Decode(columns.bytes).ok());
    ReceivedChunk chunk = TestChunk(1, stream, sequence);
    chunk.header.event_count = columns.event_count;
    chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
    chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.columns = CompressColumns(columns.bytes);
    chunk.foreign_stops = finder_.Find(decoded);
    return chunk;
  }

  ForeignStopFinder finder_;
  std::map<uint32_t, uint64_t> sequences_;
};

}  // namespace neurontrace
