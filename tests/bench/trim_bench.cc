// SPDX-License-Identifier: Apache-2.0
// What it costs to keep a continuous capture at its size: a capture of sixteen streams is filled,
// half of it is trimmed at once, and then it is written to as before while its oldest chunks go
// step by step. Prints a row a size; asserts nothing.
//
//   trim_bench [--store DIR] [--mib N]
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/store/store.h"
#include "aggregator/store/store_usage.h"
#include "lib/base/steady_clock.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/limits.h"
#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint32_t kStreams = 16;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr uint64_t kChunkNs = 50'000'000;

template <typename T>
T ValueOrDie(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "trim_bench: {}\n", std::string(result.status().message()));
  std::exit(1);
}

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double MibOnDisk(const std::string& path) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0)
      bytes += 512.0 * static_cast<double>(status.st_blocks);
  }
  return bytes / kMiB;
}

// Of this process, to any file.
double MibWritten() {
  std::ifstream io("/proc/self/io");
  std::string name;
  double bytes = 0;
  while (io >> name >> bytes) {
    if (name == "wchar:") return bytes / kMiB;
  }
  return 0;
}

std::vector<std::string> MakeColumns() {
  std::vector<std::string> columns;
  EventMix mix(1, 0, EventMix::Memory::kDefault);
  EventChunkBuilder builder;
  for (int i = 0; i < 64; ++i) {
    std::vector<EventChunkBuilder::ShapeId> shape_ids;
    const auto events = mix.Take(limits::kChunkEventsTarget);
    if (!AppendMix(mix, events, shape_ids, builder).ok()) std::exit(1);
    columns.push_back(CompressColumns(builder.Finish().bytes));
  }
  return columns;
}

struct Latencies {
  std::vector<double> ms;
  double At(double share) {
    if (ms.empty()) return 0;
    std::ranges::sort(ms);
    return ms[static_cast<size_t>(share * static_cast<double>(ms.size() - 1))];
  }
};

class Run {
 public:
  Run(std::string path, const std::vector<std::string>& columns)
      : path_(std::move(path)), columns_(columns) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    store_ = ValueOrDie(Store::Open(path_, {}));
    CaptureRecord record;
    record.id = id_;
    record.state = CaptureState::kRecording;
    if (!store_->captures().Put(record, true).ok()) std::exit(1);
  }
  ~Run() {
    store_.reset();
    std::filesystem::remove_all(path_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void Measure(double mib) {
    Latencies alone;
    while (Mib() < mib) PutRound(alone);
    const double written_before = MibWritten();
    const double put_before = put_mib_;

    // Half of it at once.
    const auto begin = SteadyClock::now();
    double step_max_ms = 0;
    Trimmed sum;
    for (uint32_t stream = 0; stream < kStreams; ++stream) {
      sum.Add(TrimBefore(stream, round_ / 2 * kChunkNs, step_max_ms));
    }
    const double seconds = SecondsSince(begin);

    // Then three times its size through it, with what is too much going every sixteen rounds.
    Latencies beside;
    double disk_max = 0;
    double step_beside_ms = 0;
    const uint64_t kept_rounds = round_ / 2;
    while (put_mib_ < put_before + 3 * mib) {
      PutRound(beside);
      if (round_ % 16 != 0) continue;
      for (uint32_t stream = 0; stream < kStreams; ++stream) {
        TrimBefore(stream, (round_ - kept_rounds) * kChunkNs, step_beside_ms);
      }
      disk_max = std::max(disk_max, MibOnDisk(path_));
    }
    const double written = MibWritten() - written_before;
    fmt::print(
        "| {:.0f} | {} | {:.0f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} / {:.1f} / {:.1f} | "
        "{:.1f} / {:.1f} / {:.1f} | {:.2f} | {:.0f} / {:.0f} |\n",
        mib, sum.chunks, static_cast<double>(sum.chunks) / seconds,
        static_cast<double>(sum.events) / seconds * 1e-6, step_max_ms, step_beside_ms,
        alone.At(0.5), alone.At(0.99), alone.At(1), beside.At(0.5), beside.At(0.99), beside.At(1),
        written / (put_mib_ - put_before), disk_max, Mib());
    std::fflush(stdout);
  }

 private:
  double Mib() const {
    return static_cast<double>(ValueOrDie(StoreUsage(*store_).CaptureBytes(id_))) / kMiB;
  }

  void PutRound(Latencies& latencies) {
    std::vector<ReceivedChunk> group(kStreams);
    for (uint32_t stream = 0; stream < kStreams; ++stream) {
      ReceivedChunk& chunk = group[stream];
      chunk.header.capture_id = id_;
      chunk.header.stream.agent_id = "agent";
      chunk.header.stream.kind = StreamKind::kNeuronCore;
      chunk.header.stream.nc_idx = stream;
      chunk.header.sequence = round_;
      chunk.header.event_count = limits::kChunkEventsTarget;
      chunk.header.events_before = round_ * limits::kChunkEventsTarget;
      chunk.header.first_timestamp_ns = round_ * kChunkNs + 1;
      chunk.header.last_timestamp_ns = (round_ + 1) * kChunkNs;
      chunk.header_bytes = std::string(300, 'h');
      chunk.columns = columns_[(round_ * kStreams + stream) % columns_.size()];
      put_mib_ += static_cast<double>(chunk.bytes()) / kMiB;
    }
    const auto begin = SteadyClock::now();
    ValueOrDie(store_->chunks().PutBatch(group));
    latencies.ms.push_back(SecondsSince(begin) * 1e3);
    ++round_;
  }

  Trimmed TrimBefore(uint32_t stream, uint64_t before_ns, double& step_max_ms) {
    Trimmed sum;
    do {
      const auto begin = SteadyClock::now();
      sum.Add(ValueOrDie(store_->chunks().Trim(id_, stream, {.before_raw_ns = before_ns})));
      step_max_ms = std::max(step_max_ms, SecondsSince(begin) * 1e3);
    } while (sum.can_remove_more);
    return sum;
  }

  const std::string path_;
  const std::vector<std::string>& columns_;
  const CaptureId id_ = *CaptureId::FromBytes(std::string(CaptureId::kBytes, '\1'));
  std::unique_ptr<Store> store_;
  uint64_t round_ = 0;
  double put_mib_ = 0;
};

int Main(int argc, char** argv) {
  std::string store = (std::filesystem::temp_directory_path() / "trim_bench").string();
  std::vector<double> sizes = {128, 512, 2048};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--store") store = argv[i + 1];
    if (option == "--mib") sizes = {std::strtod(argv[i + 1], nullptr)};
  }
  const std::vector<std::string> columns = MakeColumns();
  fmt::print(
      "| MiB of the capture | chunks trimmed | chunks/s | M events/s | longest step, ms | the same "
      "beside writing, ms | write alone p50/p99/max, ms | beside trimming | MiB written by MiB "
      "stored | most MiB on disk / kept |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const double mib : sizes) Run(store, columns).Measure(mib);
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
