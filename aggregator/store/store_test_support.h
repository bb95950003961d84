// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/store/chunk_store.h"
#include "aggregator/store/store.h"
#include "lib/base/temporary_directory.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

inline std::unique_ptr<Store> OpenInMemory() {
  return Store::Open("/store", {.in_memory = true}).value();
}

inline PutResult PutOne(Store& store, const ReceivedChunk& chunk) {
  const auto results = store.chunks().PutBatch({&chunk, 1});
  EXPECT_TRUE(results.ok()) << results.status();
  return results->front();
}

inline std::vector<uint64_t> IndexedSequences(ChunkIndexIterator it) {
  std::vector<uint64_t> sequences;
  for (; it.Valid(); it.Next()) sequences.push_back(it.entry().sequence);
  EXPECT_TRUE(it.status().ok()) << it.status();
  return sequences;
}

// The id number `n`: ids of higher numbers sort behind.
inline CaptureId TestCaptureId(uint8_t n) {
  std::string bytes(CaptureId::kBytes, '\0');
  bytes[5] = 1;
  bytes.back() = static_cast<char>(n);
  return *CaptureId::FromBytes(bytes);
}

inline CaptureRecord TestCapture(uint8_t n) {
  CaptureRecord record;
  record.id = TestCaptureId(n);
  record.spec.name = "capture " + std::to_string(n);
  record.state = CaptureState::kRecording;
  record.started_realtime_ns = 1'000 + n;
  return record;
}

inline StreamIdentity TestStream(uint32_t nc_idx, const std::string& agent_id = "agent-a") {
  StreamIdentity stream;
  stream.agent_id = agent_id;
  stream.worker = {
      .instance_id = "i-" + agent_id, .boot_id = "boot", .pid = 4711, .start_time_ticks = 99};
  stream.kind = StreamKind::kNeuronCore;
  stream.nc_idx = nc_idx;
  return stream;
}

// A chunk of 10 events, 1,000 ns long, that begins at sequence * 1,000 + 5.
inline ReceivedChunk TestChunk(uint8_t capture, const StreamIdentity& stream, uint64_t sequence) {
  ReceivedChunk chunk;
  chunk.header.capture_id = TestCaptureId(capture);
  chunk.header.stream = stream;
  chunk.header.sequence = sequence;
  chunk.header.event_count = 10;
  chunk.header.first_timestamp_ns = sequence * 1'000 + 5;
  chunk.header.last_timestamp_ns = sequence * 1'000 + 1'005;
  chunk.header.source_position = sequence * 64;
  chunk.header.source_skip = 3;
  chunk.header.columns_bytes = 5'000;
  chunk.header_bytes = "header " + std::to_string(sequence);
  chunk.columns = std::string(2'000, static_cast<char>('a' + sequence % 26));
  chunk.crc32c = 0xabcd0000u + static_cast<uint32_t>(sequence);
  return chunk;
}

}  // namespace neurontrace
