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
#include <fstream>
#include <memory>
#include <string>

#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/parquet/parquet_format.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"
#include "aggregator/export/single_file.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "tests/bench/event_mix.h"

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

// The process's resident memory in bytes: now, or its highest since it was reset.
uint64_t Resident(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kibibytes = 0;
    if (word == key && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::unique_ptr<FakeChunkSource> MakeCapture(uint32_t streams, uint64_t events) {
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
    for (uint64_t done = 0; done < per_stream; done += kEventsPerChunk) {
      const size_t count = std::min<uint64_t>(kEventsPerChunk, per_stream - done);
      for (const MixEvent& event : mix.Take(count)) {
        const auto shape = builder.InternShape(mix.shapes()[event.shape]);
        if (!shape.ok() || !builder.Append(*shape, event.fields, event.values).ok()) std::abort();
      }
      source->AddChunk(stream, builder);
    }
  }
  return source;
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeWithAttributesOnly(const ExportRequest&,
                                                                 OutputFiles& files) {
  PftraceExporter::Options options;
  options.grouping = *Grouping::Parse({}, {});
  options.arguments = ArgumentDetail::kAttributes;
  return MakeSingleFile(files, "attributes", ExportCompression::kNone, [&](ByteSink& sink) {
    return std::make_unique<PftraceExporter>(std::move(options), sink);
  });
}

const ExportFormat& FormatOf(int64_t which) {
  static const ExportFormat kAttributes{"attributes", "", MakeWithAttributesOnly};
  if (which == 0) return kAttributes;
  return **FindExportFormat(which == 1 ? "perfetto" : which == 2 ? "json" : "parquet");
}

void BM_Export(benchmark::State& state) {
  const auto streams = static_cast<uint32_t>(state.range(1));
  const auto source = MakeCapture(streams, static_cast<uint64_t>(state.range(2)));
  uint64_t events = 0;
  for (const StreamDescription& stream : source->description().streams) events += stream.events;
  ExportSummary summary;
  const uint64_t before = Resident("VmRSS:");
  ResetPeak();
  const double cpu_before = CpuSeconds();
  for (auto _ : state) {
    DiskFiles files;
    auto exported = ExportCapture(*source, FormatOf(state.range(0)), {}, files, {});
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
  state.counters["peak_MiB"] =
      (static_cast<double>(Resident("VmHWM:")) - static_cast<double>(before)) / (1 << 20);
  state.counters["decoded/chunk"] = static_cast<double>(summary.counts.chunks_read) /
                                    static_cast<double>(summary.counts.chunks_total);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"format", "streams", "events"});
  for (int64_t format : {0, 1, 2}) {
    for (int64_t events : {400'000, 4'000'000}) bench->Args({format, 32, events});
  }
  if (HasParquet()) {
    for (int64_t events : {400'000, 4'000'000, 20'000'000}) bench->Args({3, 32, events});
  }
  for (int64_t format : {0, 1}) {
    bench->Args({format, 1, 4'000'000});
    bench->Args({format, 1'000, 8'000'000});
    bench->Args({format, 32, 20'000'000});
  }
}
BENCHMARK(BM_Export)->Apply(Sizes)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace neurontrace
