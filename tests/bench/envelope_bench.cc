// SPDX-License-Identifier: Apache-2.0
// The door's work for a chunk: checksum, header, decompression, every column, header against
// columns; and the sender's: header and checksum. Argument: events, in chunks of the size that
// agents aim at.
#include <benchmark/benchmark.h>

#include <vector>

#include "lib/trace/event_chunk.h"
#include "lib/trace/limits.h"
#include "lib/wire/chunk_envelope.h"
#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

std::vector<Chunk> MakeChunks(benchmark::State& state) {
  EventMix mix(1, 3, EventMix::Memory::kDefault);
  EventChunkBuilder builder;
  std::vector<Chunk> chunks;
  const auto total = static_cast<uint64_t>(state.range(0)) / limits::kChunkEventsTarget;
  for (uint64_t sequence = 0; sequence < total; ++sequence) {
    std::vector<EventChunkBuilder::ShapeId> shapes;
    const absl::Status status =
        AppendMix(mix, mix.Take(limits::kChunkEventsTarget), shapes, builder);
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
    const EncodedColumns columns = builder.Finish();
    Chunk& chunk = chunks.emplace_back();
    chunk.header.capture_id = *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAV");
    chunk.header.stream = {
        "agent-1", {"i-0123456789abcdef0", "boot", 4711, 1, ""}, StreamKind::kNeuronCore, 3, ""};
    chunk.header.sequence = sequence;
    chunk.header.event_count = columns.event_count;
    chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
    chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
    chunk.header.rank_evidence = {{RankSource::kTorchrun, 35, 64, "RANK=35"}};
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.columns = CompressColumns(columns.bytes);
  }
  return chunks;
}

void Report(benchmark::State& state) {
  state.counters["events/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
}

void BM_EnvelopeMake(benchmark::State& state) {
  const std::vector<Chunk> chunks = MakeChunks(state);
  for (auto _ : state) {
    for (const Chunk& chunk : chunks) {
      v1::ChunkEnvelope envelope;
      ToEnvelope(chunk, 1, &envelope);
      benchmark::DoNotOptimize(envelope.crc32c());
    }
  }
  Report(state);
}

void BM_EnvelopeValidate(benchmark::State& state) {
  std::vector<v1::ChunkEnvelope> envelopes;
  for (const Chunk& chunk : MakeChunks(state)) ToEnvelope(chunk, 1, &envelopes.emplace_back());
  ChunkValidator validator;
  for (auto _ : state) {
    for (const v1::ChunkEnvelope& envelope : envelopes) {
      const auto header = validator.Validate(envelope);
      if (!header.ok()) state.SkipWithError(std::string(header.status().message()).c_str());
    }
  }
  Report(state);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("events")->Unit(benchmark::kMicrosecond);
  for (const int64_t factor : {1, 10, 100}) {
    benchmark->Arg(factor * int64_t{limits::kChunkEventsTarget});
  }
}

BENCHMARK(BM_EnvelopeMake)->Apply(Sizes);
BENCHMARK(BM_EnvelopeValidate)->Apply(Sizes);

}  // namespace
}  // namespace neurontrace
