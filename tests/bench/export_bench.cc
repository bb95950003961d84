// SPDX-License-Identifier: Apache-2.0
// A whole export from chunks in memory, as the store keeps them, to a file: read, uncompress,
// decode, pair, merge, write. Two threads, as in the service. Memory is the process's growth over
// the export.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/parquet/parquet_format.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"
#include "aggregator/export/single_file.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "lib/base/status.h"
#include "tests/bench/event_mix.h"
#include "tests/bench/resident_memory.h"

namespace neurontrace {
namespace {

constexpr size_t kEventsPerChunk = 4'096;

// A new file on disk that goes with it.
class DiskFiles : public OutputFiles {
 public:
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view) override {
    return std::make_unique<File>();
  }

 private:
  class File : public OutputFile {
   public:
    File() : file_(std::tmpfile()) {}
    ~File() override { std::fclose(file_); }
    absl::Status Write(std::string_view bytes) override {
      if (write(fileno(file_), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        return absl::UnavailableError("the disk is full");
      }
      return absl::OkStatus();
    }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    std::FILE* file_;
  };
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Whether events have attributes: without, what is left is what a span itself takes.
enum class Attributes : uint8_t { kAll, kNone };

std::unique_ptr<FakeChunkSource> MakeCapture(uint32_t streams, uint64_t events,
                                             Attributes attributes) {
  auto source = std::make_unique<FakeChunkSource>();
  EventChunkBuilder builder;
  const uint64_t per_stream = events / streams;
  for (uint32_t core = 0; core < streams; ++core) {
    StreamIdentity identity{.agent_id = "agent",
                            .worker = {"i-" + std::to_string(core / 64), "boot", core / 32, 1, ""},
                            .kind = StreamKind::kNeuronCore,
                            .nc_idx = core % 32};
    const uint32_t stream =
        source->AddStream(identity, {{RankSource::kCommunicator, core, streams, "bench"}});
    EventMix mix(core + 1, core % 32, EventMix::Memory::kDefault);
    std::vector<Shape> shapes(mix.shapes().begin(), mix.shapes().end());
    if (attributes == Attributes::kNone) {
      for (Shape& shape : shapes) shape.keys.clear();
    }
    for (uint64_t done = 0; done < per_stream; done += kEventsPerChunk) {
      const size_t count = std::min<uint64_t>(kEventsPerChunk, per_stream - done);
      for (MixEvent& event : mix.Take(count)) {
        if (attributes == Attributes::kNone) event.values.clear();
        const auto shape = builder.InternShape(shapes[event.shape]);
        if (!shape.ok() || !builder.Append(*shape, event.fields, event.values).ok()) std::abort();
      }
      source->AddChunk(stream, builder);
    }
  }
  return source;
}

PftraceExporter::Options AttributesOnly() {
  PftraceExporter::Options options;
  options.grouping = *Grouping::Parse({}, {});
  options.arguments = ArgumentDetail::kAttributes;
  return options;
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeWithAttributesOnly(const ExportRequest&,
                                                                 OutputFiles& files) {
  return MakeSingleFile(files, "attributes", ExportCompression::kNone, [](ByteSink& sink) {
    return std::make_unique<PftraceExporter>(AttributesOnly(), sink);
  });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakePacked(const ExportRequest&, OutputFiles& files) {
  PftraceExporter::Options options = AttributesOnly();
  options.compresses_packets = true;
  return MakeSingleFile(files, "packed", ExportCompression::kNone, [&](ByteSink& sink) {
    return std::make_unique<PftraceExporter>(std::move(options), sink);
  });
}

// What is measured: a format, of a capture.
struct Measured {
  ExportFormat format;
  Attributes attributes = Attributes::kAll;
};

absl::StatusOr<Measured> FindMeasured(std::string_view name) {
  if (name == "attributes") return Measured{{name, "", MakeWithAttributesOnly}};
  if (name == "bare") return Measured{{name, "", MakeWithAttributesOnly}, Attributes::kNone};
  if (name == "bare-packed") return Measured{{name, "", MakePacked}, Attributes::kNone};
  ASSIGN_OR_RETURN(const ExportFormat* format, FindExportFormat(name));
  return Measured{*format};
}

void BM_Export(benchmark::State& state, std::string_view name) {
  const auto measured = FindMeasured(name);
  if (!measured.ok()) std::abort();
  const auto source = MakeCapture(static_cast<uint32_t>(state.range(0)),
                                  static_cast<uint64_t>(state.range(1)), measured->attributes);
  uint64_t events = 0;
  for (const StreamDescription& stream : source->description().streams) events += stream.events;
  ExportSummary summary;
  const double before = ResidentMib("VmRSS:");
  ResetPeakMemory();
  const double cpu_before = CpuSeconds();
  for (auto _ : state) {
    DiskFiles files;
    auto exported = ExportCapture(*source, measured->format, {}, files, {});
    if (!exported.ok()) std::abort();
    summary = *std::move(exported);
  }
  const auto iterations = static_cast<double>(state.iterations());
  const double cpu_seconds = CpuSeconds() - cpu_before;
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events) * iterations, benchmark::Counter::kIsRate);
  // Of both threads together: what a machine busy with other things does not change.
  state.counters["cpu_ns/event"] = 1e9 * cpu_seconds / (static_cast<double>(events) * iterations);
  state.counters["B/span"] = static_cast<double>(summary.progress.bytes_written) /
                             static_cast<double>(summary.counts.spans);
  state.counters["peak_MiB"] = ResidentMib("VmHWM:") - before;
  state.counters["decoded/chunk"] = static_cast<double>(summary.counts.chunks_read) /
                                    static_cast<double>(summary.counts.chunks_total);
}

// By size of the capture, then by number of streams.
void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"streams", "events"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (int64_t events : {400'000, 4'000'000}) bench->Args({32, events});
}
void AllSizes(benchmark::internal::Benchmark* bench) {
  Sizes(bench);
  bench->Args({32, 20'000'000})->Args({1, 4'000'000})->Args({1'000, 8'000'000});
}
BENCHMARK_CAPTURE(BM_Export, bare, "bare")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Export, bare_packed, "bare-packed")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Export, attributes, "attributes")->Apply(AllSizes);
BENCHMARK_CAPTURE(BM_Export, perfetto, "perfetto")->Apply(AllSizes);
BENCHMARK_CAPTURE(BM_Export, json, "json")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Export, chrome_json, "chrome-json")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Export, xspace, "xspace")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Export, summary_text, "summary-text")->Apply(Sizes);

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) {
  if (neurontrace::HasParquet()) {
    benchmark::RegisterBenchmark("BM_Export/parquet", neurontrace::BM_Export, "parquet")
        ->Apply(neurontrace::AllSizes);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
