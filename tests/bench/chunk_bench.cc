// SPDX-License-Identifier: Apache-2.0
// Events into columns and back: how many a second on one core, and how many bytes each takes.
// Arguments: events (in chunks of the size that agents aim at), streams (each with a builder of its
// own, fed in turns), and whether every memory event is in.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>

#include "lib/trace/event_chunk.h"
#include "lib/trace/limits.h"
#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

constexpr size_t kTurn = 256;  // events that a stream hands over in one go, as a drain would
// Streams go round in this many events: few enough for a processor's cache, as fresh events are.
constexpr size_t kPoolEvents = 4 * limits::kChunkEventsTarget;

// Never with the events of a mix.
[[noreturn]] void Fail(benchmark::State& state, const absl::Status& status) {
  state.SkipWithError(std::string(status.message()).c_str());
  std::abort();
}

struct Stream {
  Stream(uint64_t seed, EventMix::Memory memory, size_t count)
      : mix(seed, static_cast<uint32_t>(seed), memory), events(mix.Take(count)) {}
  EventMix mix;
  std::vector<MixEvent> events;
  EventChunkBuilder builder;
  std::vector<EventChunkBuilder::ShapeId> shapes;
};

std::vector<Stream> MakeStreams(const benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(1));
  std::vector<Stream> streams;
  for (size_t i = 0; i < count; ++i) {
    streams.emplace_back(i, static_cast<EventMix::Memory>(state.range(2)),
                         std::max<size_t>(kPoolEvents / count, limits::kChunkEventsTarget));
  }
  return streams;
}

// Hands `total` events to the streams in turns; calls done(columns) for each full chunk and, at the
// end, for what is left.
template <typename Done>
void Encode(benchmark::State& state, std::vector<Stream>& streams, size_t total, Done&& done) {
  const auto finish = [&done](Stream& stream) {
    done(stream.builder.Finish());
    stream.shapes.clear();
  };
  size_t at = 0;
  for (size_t given = 0; given < total; at += kTurn) {
    for (Stream& stream : streams) {
      if (given >= total) break;
      const auto turn = std::span(stream.events).subspan(at % stream.events.size(), kTurn);
      const absl::Status status = AppendMix(stream.mix, turn, stream.shapes, stream.builder);
      if (!status.ok()) Fail(state, status);
      given += turn.size();
      if (stream.builder.event_count() >= limits::kChunkEventsTarget) finish(stream);
    }
  }
  for (Stream& stream : streams) {
    if (stream.builder.event_count() != 0) finish(stream);
  }
}

void Report(benchmark::State& state, size_t bytes) {
  const auto events = static_cast<double>(state.iterations() * state.range(0));
  state.counters["events/s"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["bytes/event"] = static_cast<double>(bytes) / static_cast<double>(state.range(0));
}

void BM_ChunkEncode(benchmark::State& state) {
  std::vector<Stream> streams = MakeStreams(state);
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    Encode(state, streams, static_cast<size_t>(state.range(0)),
           [&bytes](const EncodedColumns& columns) { bytes += columns.bytes.size(); });
  }
  Report(state, bytes);
}

void BM_ChunkEncodeAndCompress(benchmark::State& state) {
  std::vector<Stream> streams = MakeStreams(state);
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    Encode(state, streams, static_cast<size_t>(state.range(0)),
           [&bytes](const EncodedColumns& columns) {
             bytes += CompressColumns(columns.bytes).size();
           });
  }
  Report(state, bytes);
}

std::vector<std::string> MakeColumns(benchmark::State& state) {
  std::vector<Stream> streams = MakeStreams(state);
  std::vector<std::string> chunks;
  Encode(state, streams, static_cast<size_t>(state.range(0)),
         [&chunks](const EncodedColumns& columns) { chunks.push_back(columns.bytes); });
  return chunks;
}

void Decode(benchmark::State& state, DecodedChunk::Attributes attributes) {
  const std::vector<std::string> chunks = MakeColumns(state);
  DecodedChunk decoded;
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (const std::string& columns : chunks) {
      const absl::Status status = decoded.Decode(columns, attributes);
      if (!status.ok()) Fail(state, status);
      benchmark::DoNotOptimize(decoded.timestamp_ns().data());
      bytes += columns.size();
    }
  }
  Report(state, bytes);
}

void BM_ChunkDecode(benchmark::State& state) { Decode(state, DecodedChunk::Attributes::kDecode); }
void BM_ChunkDecodeWithoutAttributes(benchmark::State& state) {
  Decode(state, DecodedChunk::Attributes::kSkip);
}

void BM_ChunkUncompressAndDecode(benchmark::State& state) {
  const std::vector<std::string> chunks = MakeColumns(state);
  std::vector<std::string> compressed;
  for (const std::string& columns : chunks) compressed.push_back(CompressColumns(columns));
  DecodedChunk decoded;
  std::string columns;
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (size_t i = 0; i < chunks.size(); ++i) {
      absl::Status status =
          UncompressColumns(compressed[i], static_cast<uint32_t>(chunks[i].size()), columns);
      if (status.ok()) status = decoded.Decode(columns);
      if (!status.ok()) Fail(state, status);
      bytes += compressed[i].size();
    }
  }
  Report(state, bytes);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"events", "streams", "all_memory"})->Unit(benchmark::kMicrosecond);
  for (const int64_t streams : {1, 32}) {
    for (const int64_t factor : {1, 10, 100}) {
      benchmark->Args({factor * int64_t{limits::kChunkEventsTarget}, streams, 0});
    }
  }
  benchmark->Args({100 * int64_t{limits::kChunkEventsTarget}, 1, 1});
}

BENCHMARK(BM_ChunkEncode)->Apply(Sizes);
BENCHMARK(BM_ChunkEncodeAndCompress)->Apply(Sizes);
BENCHMARK(BM_ChunkDecode)->Apply(Sizes);
BENCHMARK(BM_ChunkDecodeWithoutAttributes)->Apply(Sizes);
BENCHMARK(BM_ChunkUncompressAndDecode)->Apply(Sizes);

}  // namespace
}  // namespace neurontrace
