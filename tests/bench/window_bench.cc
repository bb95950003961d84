// SPDX-License-Identifier: Apache-2.0
// What one second of a capture costs, by the capture's length: a store is filled with a chunk a
// second of every worker, then one second is exported as a Perfetto trace. What lies well outside
// of the window has an index entry and no columns: to read it would be a damaged chunk, and the
// last column says that none was. With --event-type only events of that type are exported: every
// chunk has some of nrt_load, nrt_execute, nc_exec_running, cc_running, nrt_tensor_write and
// dmem_buf_copyin, and none has any other. Prints a row a length; asserts nothing.
//
//   window_bench [--store DIR] [--workers N] [--seconds N[,N...]] [--event-type TYPE]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/store/store.h"
#include "aggregator/timeline/store_chunk_source.h"
#include "lib/base/steady_clock.h"
#include "lib/trace/columns_compression.h"
#include "tests/bench/made_capture.h"
#include "tests/bench/resident_memory.h"

namespace neurontrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kReachSeconds = 4;  // around the window: chunks with their columns

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

template <typename T>
T ValueOrDie(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "window_bench: {}\n", std::string(result.status().message()));
  std::exit(1);
}

// Output files that keep only their size and when the first byte came.
class CountedFiles : public OutputFiles {
 public:
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view) override {
    return std::make_unique<File>(*this);
  }
  uint64_t bytes = 0;
  double first_byte_seconds = 0;

 private:
  class File : public OutputFile {
   public:
    explicit File(CountedFiles& files) : files_(files) {}
    absl::Status Write(std::string_view bytes) override {
      if (files_.bytes == 0) files_.first_byte_seconds = SecondsSince(files_.begin_);
      files_.bytes += bytes.size();
      return absl::OkStatus();
    }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    CountedFiles& files_;
  };
  const SteadyClock::time_point begin_ = SteadyClock::now();
};

class StoredCapture {
 public:
  StoredCapture(std::string path, const MadeCapture& made) : path_(std::move(path)), made_(made) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    store_ = ValueOrDie(Store::Open(path_, {.durability = Durability::kPageCache}));
    record_.id = *CaptureId::FromBytes(std::string(CaptureId::kBytes, '\1'));
    record_.state = CaptureState::kRecording;
    if (!store_->captures().Put(record_, true).ok()) std::exit(1);
    for (uint64_t sequence = 0; sequence < made_.seconds; ++sequence) PutSecond(sequence);
  }
  ~StoredCapture() {
    store_.reset();
    std::filesystem::remove_all(path_);
  }
  StoredCapture(const StoredCapture&) = delete;
  StoredCapture& operator=(const StoredCapture&) = delete;

  uint64_t window_second() const { return made_.seconds / 2; }

  void Measure(double fill_seconds, const EventFilter& event_types) {
    ExportRequest request;
    request.filter.event_types = event_types;
    request.filter.window_start_ns = MadeCapture::kBaseNs + window_second() * MadeCapture::kChunkNs;
    request.filter.window_end_ns = request.filter.window_start_ns + MadeCapture::kChunkNs;
    StoreChunkSource source(store_->OpenCapture(record_.id), record_);
    const double before = ResidentMib("VmRSS:");
    ResetPeakMemory();
    const auto begin = SteadyClock::now();
    CountedFiles files;
    const ExportSummary summary =
        ValueOrDie(ExportCapture(source, **FindExportFormat("perfetto"), request, files, {}));
    const double seconds = SecondsSince(begin);
    fmt::print("| {} | {} | {:.2f} M | {:.1f} | {:.2f} | {:.2f} | {} | {} | {:.0f} | {} |\n",
               made_.streams, made_.seconds,
               static_cast<double>(made_.streams * made_.seconds) * 1e-6, fill_seconds, seconds,
               files.first_byte_seconds, summary.counts.chunks_read, summary.counts.spans,
               ResidentMib("VmHWM:") - before, summary.counts.unreadable_chunks);
    std::fflush(stdout);
  }

 private:
  bool HasColumns(uint64_t sequence) const {
    return sequence + kReachSeconds >= window_second() &&
           sequence <= window_second() + kReachSeconds;
  }

  void PutSecond(uint64_t sequence) {
    const ChunkEntry entry = made_.EntryOf(sequence);
    std::string columns = "none";
    uint32_t columns_bytes = 4;
    if (HasColumns(sequence)) {
      const std::string plain = made_.ColumnsOf(sequence);
      columns_bytes = static_cast<uint32_t>(plain.size());
      columns = CompressColumns(plain);
    }
    std::vector<ReceivedChunk> group(made_.streams);
    for (uint32_t stream = 0; stream < made_.streams; ++stream) {
      ReceivedChunk& chunk = group[stream];
      chunk.header.capture_id = record_.id;
      chunk.header.stream = made_.IdentityOf(stream);
      chunk.header.rank_evidence = {
          {RankSource::kCommunicator, static_cast<int64_t>(stream), made_.streams, "made"}};
      chunk.header.sequence = sequence;
      chunk.header.event_count = entry.event_count;
      chunk.header.events_before = sequence * entry.event_count;
      chunk.header.first_timestamp_ns = entry.first_timestamp_ns;
      chunk.header.last_timestamp_ns = entry.last_timestamp_ns;
      chunk.header.columns_bytes = columns_bytes;
      chunk.header_bytes = std::string(40, 'h');
      chunk.columns = columns;
      chunk.foreign_stops = {
          MadeCapture::EventTypes(), {{0, sequence, entry.first_timestamp_ns}}, true};
    }
    ValueOrDie(store_->chunks().PutBatch(group));
  }

  const std::string path_;
  const MadeCapture made_;
  CaptureRecord record_;
  std::unique_ptr<Store> store_;
};

int Main(int argc, char** argv) {
  std::string path = (std::filesystem::temp_directory_path() / "window_bench").string();
  std::string lengths = "36,360,3600";
  uint32_t workers = 1'000;
  std::vector<std::string> event_types;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--store") path = argv[i + 1];
    if (option == "--workers") workers = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (option == "--seconds") lengths = argv[i + 1];
    if (option == "--event-type") event_types.emplace_back(argv[i + 1]);
  }
  fmt::print(
      "| workers | seconds captured | chunks | filled in s | 1 s exported in s | first byte, s | "
      "chunks decoded | spans | MiB of the export | unreadable |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (size_t at = 0; at < lengths.size();) {
    const size_t end = std::min(lengths.find(',', at), lengths.size());
    const auto begin = SteadyClock::now();
    StoredCapture capture(
        path, {.streams = workers,
               .seconds = static_cast<uint64_t>(std::atoll(lengths.substr(at, end - at).c_str()))});
    capture.Measure(SecondsSince(begin), ValueOrDie(EventFilter::Parse(event_types)));
    at = end + 1;
  }
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
