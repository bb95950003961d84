// SPDX-License-Identifier: Apache-2.0
// The agent's way from a fetch document to compressed chunks, on one core, at three numbers of
// streams: what an event costs, and that it does not cost more when there are more of them.
//   decode     JSON to rows
//   chunks     JSON to compressed chunks, as they go to the spool
//   watched    as decode, with rules of triggers that look at every event
#include <benchmark/benchmark.h>

#include <cstring>
#include <map>
#include <memory>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/neuron/tap/record_buffer.h"
#include "agent/source/stream_writer.h"
#include "agent/triggers/agent_triggers.h"
#include "lib/base/fake_task_runner.h"
#include "tests/bench/fetch_documents.h"

namespace neurontrace {
namespace {

constexpr uint32_t kEventsPerDocument = 2'000;
constexpr uint32_t kDocumentsAtLeast = 64;

class Discard final : public ChunkSink {
 public:
  bool HasRoom(const CaptureId&) const override { return true; }
  void Submit(Chunk chunk, Done done) override {
    bytes += chunk.columns.size();
    done_later.push_back(std::move(done));
  }
  void GiveReceipts() {
    for (const Done& done : done_later) done({Fate::kStored, ""});
    done_later.clear();
  }
  uint64_t bytes = 0;
  std::vector<Done> done_later;
};

class CountOnly final : public NrtEventSink {
 public:
  void OnEvent(const NrtEvent& event) override { sum += event.fields.timestamp_ns; }
  void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
  uint64_t sum = 0;
};

class WriteAll final : public NrtEventSink {
 public:
  WriteAll(ChunkSink& sink, uint32_t cores) {
    for (uint32_t core = 0; core < cores; ++core) {
      writers_.push_back(std::make_unique<StreamWriter>(
          CaptureId(), StreamIdentity{.kind = StreamKind::kNeuronCore, .nc_idx = core}, clock_,
          sink, metrics_));
    }
  }
  void OnEvent(const NrtEvent& event) override {
    writers_[event.nc_idx]->Append(position, *event.shape, event.fields, event.values);
  }
  void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
  void End() {
    for (const auto& writer : writers_) writer->Tick(position);
  }
  uint64_t position = 1;

 private:
  SystemClock clock_;
  AgentSourceMetrics metrics_;
  std::vector<std::unique_ptr<StreamWriter>> writers_;
};

const FetchDocuments& Documents(uint32_t cores) {
  static std::map<uint32_t, FetchDocuments> made;
  auto& documents = made[cores];
  if (documents.texts.empty()) {
    documents =
        MakeFetchDocuments(cores, std::max(kDocumentsAtLeast, cores * 4), kEventsPerDocument);
  }
  return documents;
}

void Report(benchmark::State& state, const FetchDocuments& documents, uint64_t chunk_bytes) {
  const auto rounds = static_cast<double>(state.iterations());
  const auto events = static_cast<double>(documents.events);
  state.counters["events"] = benchmark::Counter(rounds * events, benchmark::Counter::kIsRate);
  state.counters["json_bytes_per_event"] = static_cast<double>(documents.bytes) / events;
  if (chunk_bytes > 0) {
    state.counters["chunk_bytes_per_event"] = static_cast<double>(chunk_bytes) / rounds / events;
  }
}

void BM_Decode(benchmark::State& state) {
  const FetchDocuments& documents = Documents(static_cast<uint32_t>(state.range(0)));
  NrtEventDecoder decoder;
  RecordBuffer buffer;
  CountOnly sink;
  for (auto _ : state) {
    for (size_t i = 0; i < documents.texts.size(); ++i) {
      char* const copy = buffer.Prepare(documents.sizes[i]);
      std::memcpy(copy, documents.texts[i].data(), documents.sizes[i]);
      decoder.Decode(copy, documents.sizes[i], 1, sink);
    }
  }
  benchmark::DoNotOptimize(sink.sum);
  Report(state, documents, 0);
}
BENCHMARK(BM_Decode)
    ->Name("agent/decode")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

void BM_Watched(benchmark::State& state) {
  const FetchDocuments& documents = Documents(static_cast<uint32_t>(state.range(0)));
  NrtEventDecoder decoder;
  RecordBuffer buffer;
  CountOnly sink;
  FakeClock clock;
  FakeTaskRunner runner(clock);
  AgentTriggers triggers("i", clock, runner, [](const TriggerFired&) { return true; });
  TriggerRule slow{.name = "slow",
                   .kind = TriggerKind::kSlowExecution,
                   .times_median = 1'000,
                   .cool_down_ns = 1'000'000'000,
                   .per_hour_max = 1,
                   .last_ns = 1'000'000'000};
  TriggerRule silent = slow;
  silent.name = "silent";
  silent.kind = TriggerKind::kSilentCore;
  silent.times_median = 0;
  silent.silent_ns = 60'000'000'000;
  triggers.SetRules({slow, silent});
  const WorkerIdentity worker{.instance_id = "i", .pid = 1};
  WatchedEvents watched(triggers, sink);
  for (auto _ : state) {
    for (size_t i = 0; i < documents.texts.size(); ++i) {
      char* const copy = buffer.Prepare(documents.sizes[i]);
      std::memcpy(copy, documents.texts[i].data(), documents.sizes[i]);
      triggers.BeginDocument(worker, "j", clock.RealtimeNs());
      decoder.Decode(copy, documents.sizes[i], 1, watched);
    }
  }
  benchmark::DoNotOptimize(sink.sum);
  Report(state, documents, 0);
}
BENCHMARK(BM_Watched)
    ->Name("agent/watched")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

void BM_Chunks(benchmark::State& state) {
  const auto cores = static_cast<uint32_t>(state.range(0));
  const FetchDocuments& documents = Documents(cores);
  NrtEventDecoder decoder;
  RecordBuffer buffer;
  Discard sink;
  WriteAll writers(sink, cores);
  for (auto _ : state) {
    for (size_t i = 0; i < documents.texts.size(); ++i) {
      char* const copy = buffer.Prepare(documents.sizes[i]);
      std::memcpy(copy, documents.texts[i].data(), documents.sizes[i]);
      decoder.Decode(copy, documents.sizes[i], 1, writers);
      ++writers.position;
      sink.GiveReceipts();
    }
  }
  Report(state, documents, sink.bytes);
}
BENCHMARK(BM_Chunks)
    ->Name("agent/chunks")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
