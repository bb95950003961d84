// SPDX-License-Identifier: Apache-2.0
// What the page's questions cost at the server, by the size of the capture: a store is filled with
// a chunk a second of every rank, digests are made, then layout, spans, heat maps, searches and
// summaries are asked for as the page asks. Prints a table, and with --json FILE the same figures
// for programs; asserts nothing.
//
//   view_bench [--store DIR] [--sizes EVENTS:RANKS[,EVENTS:RANKS...]] [--views N] [--json FILE]
//              [--all-ranks no]
//   view_bench --fill EVENTS:RANKS --store DIR
//
// With --all-ranks no it leaves out the view of all ranks at once, which takes most of the time.
// With --ingest EVENTS:RANKS it measures instead what digests cost ingest: half of a store is
// filled with and without the thread that makes them, in turn, --rounds N times each. With
// --fill EVENTS:RANKS it measures nothing, and keeps the store with its digests for other programs.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/store/store.h"
#include "aggregator/view/capture_views.h"
#include "aggregator/view/digest_service.h"
#include "lib/base/clock.h"
#include "lib/base/json_writer.h"
#include "lib/trace/columns_compression.h"
#include "tests/bench/made_capture.h"
#include "tests/bench/resident_memory.h"

namespace neurontrace {
namespace {

using BenchClock = std::chrono::steady_clock;

constexpr uint32_t kStreamsInView = 60;
constexpr uint32_t kPixels = 1'600;
constexpr uint32_t kHeatColumns = 1'000;

double MillisSince(BenchClock::time_point begin) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - begin).count();
}

template <typename T>
T ValueOrExit(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "view_bench: {}\n", std::string(result.status().message()));
  std::exit(1);
}

// The bytes of an answer as a browser receives it.
uint64_t GzipBytes(const std::string& text) {
  uLongf bytes = compressBound(text.size());
  std::string compressed(bytes, '\0');
  compress2(reinterpret_cast<Bytef*>(compressed.data()), &bytes,
            reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_SPEED);
  return bytes;
}

// Figures of one kind; sorted once they are asked for.
class Sample {
 public:
  void Add(double value) { values_.push_back(value); }
  double Quantile(double part) {
    if (values_.empty()) return 0;
    std::ranges::sort(values_);
    const auto at = static_cast<size_t>(std::ceil(part * static_cast<double>(values_.size())));
    return values_[std::min(std::max<size_t>(at, 1), values_.size()) - 1];
  }

 private:
  std::vector<double> values_;
};

struct BenchSize {
  uint64_t events = 0;
  uint32_t ranks = 0;
};

class ViewBench : private ViewClocks {
 public:
  ViewBench(std::string path, const BenchSize& size, uint64_t views, bool has_all_ranks)
      : path_(std::move(path)), views_asked_(views), has_all_ranks_(has_all_ranks) {
    made_.streams = size.ranks;
    made_.is_varied = true;
    made_.seconds =
        std::max<uint64_t>(size.events / (uint64_t{made_.events_per_chunk()} * size.ranks), 1);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    store_ = ValueOrExit(Store::Open(path_, {.durability = Durability::kPageCache}));
    record_.id = *CaptureId::FromBytes(std::string(CaptureId::kBytes, '\1'));
    record_.state = CaptureState::kComplete;
    if (!store_->captures().Put(record_, true).ok()) std::exit(1);
    views_ = std::make_unique<CaptureViews>(
        CaptureViews::Deps{.store = *store_, .clocks = *this, .clock = clock_});
  }
  ~ViewBench() override {
    views_.reset();
    store_.reset();
    if (!is_kept_) std::filesystem::remove_all(path_);
  }
  ViewBench(const ViewBench&) = delete;
  ViewBench& operator=(const ViewBench&) = delete;

  // Returns the figures by name, in the order of the table.
  std::vector<std::pair<std::string, double>> Measure() {
    const double events = this->events();
    Figure("ranks", made_.streams);
    Figure("events", events);
    Fill(0, made_.seconds);
    Figure("fill, s", put_ms_ / 1'000);
    Figure("fill, M events/s", events / put_ms_ / 1'000);
    Figure("chunks, bytes an event", static_cast<double>(column_bytes_) / events);
    Figure("store, MiB", static_cast<double>(store_->bytes()) / (1 << 20));
    ResetPeakMemory();
    auto begin = BenchClock::now();
    DigestService(DigestService::Deps{*store_, registry_}).RunPass();
    const double digest_ms = MillisSince(begin);
    Figure("digests, s", digest_ms / 1'000);
    Figure("digests, M events/s", events / digest_ms / 1'000);
    Figure("digests, bytes an event", static_cast<double>(store_->digests().Bytes()) / events);
    ResetPeakMemory();
    begin = BenchClock::now();
    const std::string layout = ValueOrExit(views_->Layout(record_))->Json();
    Figure("layout, ms", MillisSince(begin));
    Figure("layout gzip, kB", static_cast<double>(GzipBytes(layout)) / 1'000);
    MeasureSpans();
    MeasureHeat();
    MeasureSearch();
    MeasureSummary();
    Figure("peak RSS, MiB", ResidentMib("VmHWM:"));
    return std::move(figures_);
  }

  // Fills the store and makes its digests, and leaves it on the disk.
  void FillAndKeep() {
    is_kept_ = true;
    Fill(0, made_.seconds);
    DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  }
  std::string capture_id() const { return record_.id.ToString(); }
  // Stores the second half of a running capture. Returns the milliseconds that the store took.
  double FillAlone() {
    SetState(CaptureState::kRecording);
    Fill(0, made_.seconds / 2);
    put_ms_ = 0;
    Fill(made_.seconds / 2, made_.seconds);
    return put_ms_;
  }
  // The same beside the thread that makes digests, which the first half keeps busy.
  double FillBesideDigests() {
    SetState(CaptureState::kRecording);
    Fill(0, made_.seconds / 2);
    put_ms_ = 0;
    DigestService service(DigestService::Deps{*store_, registry_});
    service.Begin();
    Fill(made_.seconds / 2, made_.seconds);
    digest_bytes_ = store_->digests().Bytes();
    service.End();
    return put_ms_;
  }
  // Of digests that were made beside the last filling.
  uint64_t digest_bytes() const { return digest_bytes_; }
  double events() const {
    return static_cast<double>(made_.streams * made_.seconds * made_.events_per_chunk());
  }

 private:
  void SetState(CaptureState state) {
    record_.state = state;
    if (!store_->captures().Put(record_, true).ok()) std::exit(1);
  }
  void Fill(uint64_t first, uint64_t end) {
    for (uint64_t sequence = first; sequence < end; ++sequence) PutSecond(sequence);
  }
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord&) override { return CaptureClocks(); }

  void Figure(std::string name, double value) { figures_.emplace_back(std::move(name), value); }

  uint64_t end_ns() const { return MadeCapture::kBaseNs + made_.seconds * MadeCapture::kChunkNs; }

  // The same columns for every rank, as they are made once.
  void PutSecond(uint64_t sequence) {
    const ChunkEntry entry = made_.EntryOf(sequence);
    const std::string plain = made_.ColumnsOf(sequence);
    const std::string columns = CompressColumns(plain);
    constexpr uint32_t kGroup = 500;
    for (uint32_t first = 0; first < made_.streams; first += kGroup) {
      std::vector<ReceivedChunk> group(std::min(kGroup, made_.streams - first));
      for (uint32_t i = 0; i < group.size(); ++i) {
        ReceivedChunk& chunk = group[i];
        chunk.header.capture_id = record_.id;
        chunk.header.stream = made_.IdentityOf(first + i);
        chunk.header.rank_evidence = {
            {RankSource::kCommunicator, static_cast<int64_t>(first + i), made_.streams, "made"}};
        chunk.header.sequence = sequence;
        chunk.header.event_count = entry.event_count;
        chunk.header.events_before = sequence * entry.event_count;
        chunk.header.first_timestamp_ns = entry.first_timestamp_ns;
        chunk.header.last_timestamp_ns = entry.last_timestamp_ns;
        chunk.header.columns_bytes = static_cast<uint32_t>(plain.size());
        chunk.header_bytes = std::string(40, 'h');
        chunk.columns = columns;
        chunk.foreign_stops = {
            MadeCapture::EventTypes(), {{0, sequence, entry.first_timestamp_ns}}, true};
      }
      // Only what the store does: making the chunks takes longer than storing them.
      const auto begin = BenchClock::now();
      for (const PutResult& put : ValueOrExit(store_->chunks().PutBatch(group))) {
        if (put.outcome == PutOutcome::kStored) continue;
        fmt::print(stderr, "view_bench: the store refused a chunk\n");
        std::exit(1);
      }
      put_ms_ += MillisSince(begin);
      column_bytes_ += columns.size() * group.size();
    }
  }

  std::vector<uint32_t> StreamsFrom(uint32_t first) const {
    std::vector<uint32_t> streams;
    for (uint32_t i = first; i < std::min(first + kStreamsInView, made_.streams); ++i) {
      streams.push_back(i);
    }
    return streams;
  }

  void MeasureSpans() {
    ViewRequest request;
    request.pixels = kPixels;
    request.streams = StreamsFrom(0);
    auto begin = BenchClock::now();
    const std::string first = ValueOrExit(views_->Spans(record_, request, {}));
    Figure("first view of 60 ranks, ms", MillisSince(begin));
    Figure("first view gzip, kB", static_cast<double>(GzipBytes(first)) / 1'000);
    if (has_all_ranks_) MeasureAllRanks();
    std::mt19937_64 random(1);
    Sample ms;
    Sample raw_kb;
    Sample gzip_kb;
    for (uint64_t i = 0; i < views_asked_; ++i) {
      // Lengths from the whole down to a millisecond, each factor of two as often as any other.
      const double share = std::generate_canonical<double, 53>(random);
      const double whole_ns = static_cast<double>(end_ns() - MadeCapture::kBaseNs);
      const auto length_ns = static_cast<uint64_t>(1e6 * std::pow(whole_ns / 1e6, share));
      const uint64_t room_ns = end_ns() - MadeCapture::kBaseNs - length_ns;
      request.from_ns = MadeCapture::kBaseNs + random() % (room_ns + 1);
      request.to_ns = *request.from_ns + length_ns;
      request.streams = StreamsFrom(static_cast<uint32_t>(random() % made_.streams));
      begin = BenchClock::now();
      const std::string answer = ValueOrExit(views_->Spans(record_, request, {}));
      ms.Add(MillisSince(begin));
      raw_kb.Add(static_cast<double>(answer.size()) / 1'000);
      gzip_kb.Add(static_cast<double>(GzipBytes(answer)) / 1'000);
    }
    Figure("viewport p50, ms", ms.Quantile(0.5));
    Figure("viewport p99, ms", ms.Quantile(0.99));
    Figure("viewport raw p50, kB", raw_kb.Quantile(0.5));
    Figure("viewport raw p99, kB", raw_kb.Quantile(0.99));
    Figure("viewport gzip p50, kB", gzip_kb.Quantile(0.5));
    Figure("viewport gzip p99, kB", gzip_kb.Quantile(0.99));
  }

  void MeasureAllRanks() {
    ViewRequest request;
    request.pixels = kPixels;
    const auto begin = BenchClock::now();
    const std::string all = ValueOrExit(views_->Spans(record_, request, {}));
    Figure("view of all ranks, ms", MillisSince(begin));
    Figure("view of all ranks gzip, kB", static_cast<double>(GzipBytes(all)) / 1'000);
  }

  static bool IsComplete(const std::string& answer) {
    return answer.find("\"complete\":true") != std::string::npos;
  }
  // The number behind a member's name in an answer; 0 if it does not have it.
  static double NumberOf(const std::string& answer, const std::string& name) {
    const size_t at = answer.find(name);
    if (at == std::string::npos) return 0;
    return std::strtod(answer.c_str() + at + name.size(), nullptr);
  }

  std::string HeatOf(const std::string& metric, const std::string& what, ViewRequest request) {
    request.columns = kHeatColumns;
    request.metric = metric;
    const auto begin = BenchClock::now();
    std::string map = ValueOrExit(views_->Heat(record_, request, {}));
    Figure(what + ", ms", MillisSince(begin));
    return map;
  }

  void MeasureHeat() {
    const std::string map = HeatOf("busy", "heat map of all ranks", {});
    Figure("heat map gzip, kB", static_cast<double>(GzipBytes(map)) / 1'000);
    Figure("heat map columns", NumberOf(map, "\"columns\":"));
    Figure("heat map times within, ms", NumberOf(map, "\"shift_ns\":\"") / 1e6);
    Figure("heat map is complete", IsComplete(map) ? 1 : 0);
    HeatOf("events", "heat map of events", {});
    ViewRequest part;
    const uint64_t length_ns = end_ns() - MadeCapture::kBaseNs;
    part.from_ns = MadeCapture::kBaseNs + length_ns / 3;
    part.to_ns = *part.from_ns + length_ns / 3;
    Figure("heat map of a third is complete",
           IsComplete(HeatOf("busy", "heat map of a third of the time", part)) ? 1 : 0);
    HeatOf("late", "heat map of lateness", {});
  }

  void MeasureSearch() {
    ViewRequest request;
    request.query = "name:cc_running";
    request.limit = 200;
    auto begin = BenchClock::now();
    ValueOrExit(views_->Events(record_, request, {}));
    Figure("list of 200 events, ms", MillisSince(begin));
    begin = BenchClock::now();
    const std::string counted = ValueOrExit(views_->Search(record_, request, {}));
    Figure("200 hits and exact count, ms", MillisSince(begin));
    Figure("search is complete", IsComplete(counted) ? 1 : 0);
    Figure("hits", NumberOf(counted, "\"total\":\""));
    request.query = "name:absent";
    begin = BenchClock::now();
    ValueOrExit(views_->Search(record_, request, {}));
    Figure("search without a hit, ms", MillisSince(begin));
  }

  void MeasureSummary() {
    const auto begin = BenchClock::now();
    const std::string summary = ValueOrExit(views_->Summary(record_, {}, {}));
    Figure("summary of everything, ms", MillisSince(begin));
    Figure("summary is complete", IsComplete(summary) ? 1 : 0);
  }

  const std::string path_;
  const uint64_t views_asked_;
  const bool has_all_ranks_;
  MadeCapture made_;
  CaptureRecord record_;
  SystemClock clock_;
  prometheus::Registry registry_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CaptureViews> views_;
  std::vector<std::pair<std::string, double>> figures_;
  double put_ms_ = 0;  // of all chunks
  uint64_t column_bytes_ = 0;
  uint64_t digest_bytes_ = 0;
  bool is_kept_ = false;  // the store stays when this object ends
};

// Parses "1000000:100,10000000:1000".
std::vector<BenchSize> ParseSizes(const std::string& text) {
  std::vector<BenchSize> sizes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const size_t colon = text.find(':', at);
    if (colon >= end) {
      fmt::print(stderr, "view_bench: --sizes: write EVENTS:RANKS\n");
      std::exit(2);
    }
    BenchSize size;
    size.events = std::strtoull(text.c_str() + at, nullptr, 10);
    size.ranks = static_cast<uint32_t>(std::strtoul(text.c_str() + colon + 1, nullptr, 10));
    size.ranks = std::max(size.ranks, 1u);
    sizes.push_back(size);
    at = end + 1;
  }
  return sizes;
}

// Prints what the thread that makes digests costs ingest.
void MeasureIngest(const std::string& path, const BenchSize& size, uint64_t rounds) {
  Sample alone;
  Sample beside;
  double events = 0;
  uint64_t digest_bytes = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const bool has_digests : {false, true}) {
      ViewBench bench(path, size, 0, false);
      events = bench.events() / 2;
      has_digests ? beside.Add(bench.FillBesideDigests()) : alone.Add(bench.FillAlone());
      if (has_digests) digest_bytes = bench.digest_bytes();
    }
  }
  const double alone_ms = alone.Quantile(0.5);
  const double beside_ms = beside.Quantile(0.5);
  fmt::print("| ingest of {:.3g} M events, {} ranks, median of {} | |\n| --- | --- |\n",
             events / 1e6, size.ranks, rounds);
  fmt::print("| without digests, M events/s | {:.3g} |\n", events / alone_ms / 1'000);
  fmt::print("| beside digests, M events/s | {:.3g} |\n", events / beside_ms / 1'000);
  fmt::print("| slower by, % | {:.1f} |\n", (beside_ms / alone_ms - 1) * 100);
  fmt::print("| digests made meanwhile, MiB | {:.3g} |\n",
             static_cast<double>(digest_bytes) / (1 << 20));
}

int Main(int argc, char** argv) {
  std::string path = (std::filesystem::temp_directory_path() / "view_bench").string();
  std::string sizes = "1000000:100,10000000:1000,100000000:10000";
  std::string json_file;
  std::string ingest;
  std::string fill;
  uint64_t views = 300;
  uint64_t rounds = 5;
  bool has_all_ranks = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--store") path = argv[i + 1];
    if (option == "--sizes") sizes = argv[i + 1];
    if (option == "--views") views = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--ingest") ingest = argv[i + 1];
    if (option == "--fill") fill = argv[i + 1];
    if (option == "--rounds") rounds = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--all-ranks") has_all_ranks = std::string_view(argv[i + 1]) != "no";
    if (option == "--json") json_file = argv[i + 1];
  }
  if (!fill.empty()) {
    ViewBench bench(path, ParseSizes(fill).front(), 0, false);
    bench.FillAndKeep();
    fmt::print("{} in {}\n", bench.capture_id(), path);
    return 0;
  }
  if (!ingest.empty()) {
    for (const BenchSize& size : ParseSizes(ingest)) MeasureIngest(path, size, rounds);
    return 0;
  }
  std::vector<std::vector<std::pair<std::string, double>>> runs;
  for (const BenchSize& size : ParseSizes(sizes)) {
    ViewBench bench(path, size, views, has_all_ranks);
    runs.push_back(bench.Measure());
    for (const auto& [name, value] : runs.back()) fmt::print(stderr, "{}: {:.6g}\n", name, value);
  }
  JsonWriter json;
  json.Open('[');
  for (const auto& run : runs) {
    json.Open('{');
    for (const auto& [name, value] : run) json.Key(name).Json(fmt::format("{:.6g}", value));
    json.Close('}');
  }
  if (!json_file.empty()) std::ofstream(json_file) << json.Close(']').Take() << "\n";
  std::string head = "| what |";
  std::string rule = "| --- |";
  for (const auto& run : runs) {
    head += fmt::format(" {:.3g} M events, {} ranks |", run[1].second / 1e6, run[0].second);
    rule += " --- |";
  }
  fmt::print("{}\n{}\n", head, rule);
  for (size_t row = 0; !runs.empty() && row < runs.front().size(); ++row) {
    std::string line = fmt::format("| {} |", runs.front()[row].first);
    for (const auto& run : runs) line += fmt::format(" {:.6g} |", run[row].second);
    fmt::print("{}\n", line);
  }
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
