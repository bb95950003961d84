// SPDX-License-Identifier: Apache-2.0
// Values with everything in them, and a chunk of real columns.
#pragma once

#include <string>

#include "lib/trace/chunk_header.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

inline CaptureId SomeCapture() { return *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"); }

inline WorkerIdentity SomeWorker() {
  return {"i-0abc", "b6f1c0de-boot", 4711, 123'456'789'012, "container"};
}

inline StreamIdentity SomeStream() {
  return {"agent-1", SomeWorker(), StreamKind::kNeuronCore, 3, "worker0.pt.trace.json"};
}

// A chunk of two events whose header says the truth.
inline Chunk SomeChunk() {
  EventChunkBuilder builder;
  const Shape shape{"nrt_execute",
                    Phase::kStart,
                    FieldBit(Field::kTimestamp) | FieldBit(Field::kId),
                    0,
                    {{"model_name", ValueType::kString, KeyScope::kData}}};
  const auto id = builder.InternShape(shape);
  const AttributeValue value{0, "model"};
  for (const uint64_t time : {1000, 2000}) {
    if (!builder.Append(*id, {.timestamp_ns = time, .id = time}, {&value, 1}).ok()) return {};
  }
  const EncodedColumns columns = builder.Finish();
  Chunk chunk;
  chunk.header.capture_id = SomeCapture();
  chunk.header.stream = SomeStream();
  chunk.header.sequence = 7;
  chunk.header.event_count = columns.event_count;
  chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
  chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
  chunk.header.rank_evidence = {{RankSource::kPjrt, 35, 64, "NEURON_PJRT_PROCESS_INDEX=1"}};
  chunk.header.losses = {
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 12, false, 900, 999, "hole"}};
  chunk.header.remarks = {{.kind = RemarkKind::kOpenSpan, .count = 3, .details = {"element 7"}}};
  chunk.header.producer_version = "0.1.0";
  chunk.header.source_position = 1 << 20;
  chunk.header.source_skip = 5;
  chunk.header.end_of_stream = true;
  chunk.header.events_before = 4'000;
  chunk.header.sequence_mark = 4'101;
  chunk.header.losses_before = {
      {.place = LossPlace::kTapBuffer, .reason = LossReason::kFull, .events = 3}};
  chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
  chunk.columns = CompressColumns(columns.bytes);
  return chunk;
}

}  // namespace neurontrace
