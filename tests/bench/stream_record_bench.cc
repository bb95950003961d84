// SPDX-License-Identifier: Apache-2.0
// What a write of chunks costs beyond the chunks: the record of each of their streams, encoded once
// a write and decoded at start and by readers. Argument: gaps in the record, each a loss.
#include <benchmark/benchmark.h>

#include <string>

#include "aggregator/store/stream_record.h"

namespace neurontrace {
namespace {

StreamRecord MakeRecord(int64_t gaps) {
  StreamRecord record;
  record.identity = {.agent_id = "ip-10-0-0-1.ec2.internal",
                     .worker = {.instance_id = "i-0123456789abcdef0",
                                .boot_id = "b6f1c0de-4cde-8f01-23456789abcd",
                                .pid = 4711,
                                .start_time_ticks = 123'456'789},
                     .kind = StreamKind::kNeuronCore,
                     .nc_idx = 3};
  record.next_sequence = record.chunks = 40'000;
  record.events = record.captured = 160'000'000;
  record.bytes = 3'000'000'000;
  record.source_position = record.sequence_mark = record.events;
  record.first_timestamp_ns = 1'776'672'348'756'756'905;
  record.last_timestamp_ns = record.first_timestamp_ns + 600'000'000'000;
  record.chunk_span_max_ns = 40'000'000;
  record.evidence = {{.source = RankSource::kPjrt,
                      .worker_gid = 35,
                      .world_size = 64,
                      .detail = "NEURON_PJRT_PROCESS_INDEX=1"}};
  for (int64_t i = 0; i < gaps; ++i) {
    record.gaps.push_back({.place = LossPlace::kRuntimeRing,
                           .reason = LossReason::kOverwritten,
                           .events = 12,
                           .first_timestamp_ns = record.first_timestamp_ns,
                           .last_timestamp_ns = record.last_timestamp_ns});
  }
  return record;
}

void BM_StreamRecordEncode(benchmark::State& state) {
  const StreamRecord record = MakeRecord(state.range(0));
  std::string value;
  for (auto _ : state) benchmark::DoNotOptimize(value = EncodeStreamRecord(record));
  state.counters["bytes"] = static_cast<double>(value.size());
}

void BM_StreamRecordDecode(benchmark::State& state) {
  const std::string value = EncodeStreamRecord(MakeRecord(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(DecodeStreamRecord(3, value).ok());
}

BENCHMARK(BM_StreamRecordEncode)->Arg(0)->Arg(32);
BENCHMARK(BM_StreamRecordDecode)->Arg(0)->Arg(32);

}  // namespace
}  // namespace neurontrace
