// SPDX-License-Identifier: Apache-2.0
// The agent's way from a fetch document to compressed chunks, on one core, at three numbers of
// streams: what an event costs, and that it does not cost more when there are more of them.
//   decode     JSON to rows
//   chunks     JSON to compressed chunks, as they go to the spool
//   …/full     the same without predicted layouts: every event goes through the full decoder
//   watched    as decode, with rules of triggers that look at every event
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/neuron/tap/record_buffer.h"
#include "agent/source/stream_writer.h"
#include "agent/triggers/agent_triggers.h"
#include "agent/triggers/trigger_sink.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

// Fetch documents like those of a busy worker: executions with their nested spans, hardware events,
// collectives, tensor and memory events, in the runtime's own order of keys, about 350 bytes an
// event. The same for the same arguments.
struct FetchDocuments {
  std::vector<std::string> texts;  // each followed by 64 bytes of zero that are not counted below
  std::vector<size_t> sizes;
  uint64_t events = 0;
  uint64_t bytes = 0;
};

constexpr const char* kModel = "/home/ubuntu/models/llama-3.1-8b-instruct/graph_4f1c2a9e.neff";

// What one core is doing: enough state for ids and times to look alive.
struct Core {
  uint64_t id = 0;
  uint64_t now_ns = 1'755'115'507'555'000'000;
  uint64_t execution = 0;
  uint32_t step = 0;
};

std::string Data(uint32_t step, const Core& core, Random& random) {
  const uint64_t exec = core.execution;
  switch (step) {
    case 0:
    case 1:
      return fmt::format(R"("model_id":1578576049,"model_name":"{}")", kModel);
    case 2:
    case 3:
    case 5:
      return fmt::format(R"("exec_id":{},"model_id":1578576049,"model_name":"{}")", exec, kModel);
    case 4:
      return fmt::format(R"("peer_id":{},"exec_id":{},"nec_dev_id":3)", random.Next64() % 64, exec);
    case 6:
      return fmt::format(
          R"("device_core_idx":12,"exec_id":{},"nc_timestamp_ns":{},"model_id":1578576049,"model_name":"{}")",
          exec, core.now_ns - 1'755'000'000'000'000'000, kModel);
    case 7:
      return fmt::format(
          R"("gid":35,"op_id":{},"exec_id":{},"nc_timestamp_ns":{},"algorithm":"ring")",
          random.Next64() % 36, exec, core.now_ns - 1'755'000'000'000'000'000);
    case 8:
    case 9:
      return fmt::format(R"("tensor_id":{},"size":{})", random.Next64(),
                         (random.Next64() % 64) * 4096);
    case 10:
      return fmt::format(R"("mem_type":1,"mem_handle":{},"offset":{},"size":{})",
                         0x7f3a00000000 + random.Next64() % 4096 * 4096, random.Next64() % 4096,
                         (random.Next64() % 64) * 4096);
    default:
      return fmt::format(R"("exec_id":{},"nc_timestamp_ns":{},"cpu_timestamp_ns":{})", exec,
                         core.now_ns - 1'755'000'000'000'000'000, core.now_ns);
  }
}

constexpr const char* kTypes[] = {"nrt_execute",      "kmgr_exec_core",  "kbl_exec_pre",
                                  "kbl_exec_core",    "enc_barrier",     "kbl_exec_wait",
                                  "nc_exec_running",  "cc_running",      "nrt_tensor_read",
                                  "nrt_tensor_write", "dmem_buf_copyin", "timestamp_sync_point"};
constexpr uint32_t kTypeCount = std::size(kTypes);

void AppendEvent(uint32_t nc_idx, Core& core, Random& random, std::string& out) {
  const uint32_t type = core.step / 2;
  const bool start = core.step % 2 == 0;
  const uint64_t id = (uint64_t{nc_idx} << 50) + core.id;
  core.now_ns += 200 + random.Next64() % 20'000;
  const char* const phase = type == kTypeCount - 1 ? "instant" : start ? "start" : "stop";
  fmt::format_to(
      std::back_inserter(out),
      R"({{"event_type":"{}","phase":"{}","id":{},"nc_idx":{},"nc_local_id":{},"tracking_id":{},)"
      R"("thread_id":{},"worker_gid":{},"data":{{{}}},"timestamp_ns":{},"nrta_seq_id":{}}})",
      kTypes[type], phase, id, nc_idx, core.id, id - (start ? 0 : 1), 1'113'600 + nc_idx,
      nc_idx + 32, start || type >= 6 ? Data(type, core, random) : "", core.now_ns, core.execution);
  ++core.id;
  if (++core.step == 2 * kTypeCount) {
    core.step = 0;
    ++core.execution;
  }
}

FetchDocuments MakeFetchDocuments(uint32_t cores, uint32_t documents,
                                  uint32_t events_per_document) {
  SeededRandom random(7);
  std::vector<Core> state(cores);
  FetchDocuments made;
  for (uint32_t d = 0; d < documents; ++d) {
    std::string text = R"({"events":[)";
    for (uint32_t e = 0; e < events_per_document; ++e) {
      if (e > 0) text += ',';
      AppendEvent(d % cores, state[d % cores], random, text);
    }
    text += R"(],"data_version":2})";
    made.sizes.push_back(text.size());
    made.bytes += text.size();
    made.events += events_per_document;
    text.append(64, '\0');
    made.texts.push_back(std::move(text));
  }
  return made;
}

constexpr uint32_t kEventsPerDocument = 2'000;
constexpr uint32_t kDocumentsAtLeast = 64;

class Discard final : public ChunkSink {
 public:
  bool HasRoom(const CaptureId&) const override { return true; }
  void Submit(Chunk chunk, Done done) override {
    bytes += chunk.columns.size();
    done_later.push_back(std::move(done));
  }
  void SendReceipts() {
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

void BM_Decode(benchmark::State& state, NrtEventDecoder::Prediction prediction) {
  const FetchDocuments& documents = Documents(static_cast<uint32_t>(state.range(0)));
  NrtEventDecoder decoder(prediction);
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
BENCHMARK_CAPTURE(BM_Decode, predicted, NrtEventDecoder::Prediction::kOn)
    ->Name("agent/decode")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Decode, full, NrtEventDecoder::Prediction::kOff)
    ->Name("agent/decode/full")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

class DiscardTriggers final : public TriggerSink {
 public:
  bool ReportTrigger(const TriggerFired&) override { return true; }
};

void BM_Watched(benchmark::State& state) {
  const FetchDocuments& documents = Documents(static_cast<uint32_t>(state.range(0)));
  NrtEventDecoder decoder;
  RecordBuffer buffer;
  CountOnly sink;
  FakeClock clock;
  FakeTaskRunner runner(clock);
  DiscardTriggers reports;
  AgentTriggers triggers("i", clock, runner, reports);
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

void BM_Chunks(benchmark::State& state, NrtEventDecoder::Prediction prediction) {
  const auto cores = static_cast<uint32_t>(state.range(0));
  const FetchDocuments& documents = Documents(cores);
  NrtEventDecoder decoder(prediction);
  RecordBuffer buffer;
  Discard sink;
  WriteAll writers(sink, cores);
  for (auto _ : state) {
    for (size_t i = 0; i < documents.texts.size(); ++i) {
      char* const copy = buffer.Prepare(documents.sizes[i]);
      std::memcpy(copy, documents.texts[i].data(), documents.sizes[i]);
      decoder.Decode(copy, documents.sizes[i], 1, writers);
      ++writers.position;
      sink.SendReceipts();
    }
  }
  Report(state, documents, sink.bytes);
}
BENCHMARK_CAPTURE(BM_Chunks, predicted, NrtEventDecoder::Prediction::kOn)
    ->Name("agent/chunks")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Chunks, full, NrtEventDecoder::Prediction::kOff)
    ->Name("agent/chunks/full")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
