// SPDX-License-Identifier: Apache-2.0
// What RocksDB's settings cost and bring: the same chunks written as the aggregator writes them (a
// chunk, its index entry and its stream's record in one synced write of sixteen streams), read
// back, and half of them deleted, under the settings of the store and under one changed at a time.
// Prints a row a variant, medians over the repetitions; asserts nothing.
//
//   store_bench [--store DIR] [--mib N] [--repetitions N]
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/store/database_options.h"
#include "aggregator/store/keys.h"
#include "lib/base/steady_clock.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/limits.h"
#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Change = std::function<void(rocksdb::DBOptions&, rocksdb::ColumnFamilyOptions& chunks)>;

constexpr uint32_t kStreams = 16;
constexpr size_t kMiB = size_t{1} << 20;

struct Variant {
  std::string name;
  Change change;
};

struct Figures {
  double write_mib_s = 0;
  double cpu_ns_event = 0;  // of writing, compaction included
  double disk_factor = 0;   // bytes on disk by bytes of chunks
  double read_mib_s = 0;
  double delete_seconds = 0;
  double left_factor = 0;  // after half was deleted, by what is left of chunks
};

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "store_bench: {}\n", status.ToString());
  std::exit(1);
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double BytesOnDisk(const std::string& path) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0)
      bytes += 512.0 * static_cast<double>(status.st_blocks);
  }
  return bytes;
}

CaptureId CaptureNumber(char number) {
  std::string bytes(CaptureId::kBytes, '\0');
  bytes.back() = number;
  return *CaptureId::FromBytes(bytes);
}

std::vector<std::string> MakeValues() {
  std::vector<std::string> values;
  EventMix mix(1, 0, EventMix::Memory::kDefault);
  EventChunkBuilder builder;
  for (int i = 0; i < 64; ++i) {
    std::vector<EventChunkBuilder::ShapeId> shape_ids;
    const auto events = mix.Take(limits::kChunkEventsTarget);
    if (!AppendMix(mix, events, shape_ids, builder).ok()) std::exit(1);
    values.push_back(std::string(300, 'h') + CompressColumns(builder.Finish().bytes));
  }
  return values;
}

class Run {
 public:
  Run(std::string path, const Variant& variant) : path_(std::move(path)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    rocksdb::DBOptions options = DatabaseOptions(nullptr);
    auto families = FamilyDescriptors();
    for (auto& family : families) {
      if (family.name == FamilyName(Family::kChunks)) variant.change(options, family.options);
    }
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, path_, families, &handles_, &db));
    db_.reset(db);
  }
  ~Run() {
    for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
    db_.reset();
    std::filesystem::remove_all(path_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Figures Measure(const std::vector<std::string>& values, double mib) {
    Figures figures;
    Write(values, mib, figures);
    Read(figures);
    Delete(figures);
    return figures;
  }

 private:
  rocksdb::ColumnFamilyHandle* Handle(Family family) {
    return handles_[static_cast<size_t>(family) + 1];
  }

  // Two captures at once, in turn, as when two are recorded.
  void Write(const std::vector<std::string>& values, double mib, Figures& figures) {
    rocksdb::WriteOptions options;
    options.sync = true;
    const double cpu = CpuSeconds();
    const auto begin = SteadyClock::now();
    uint64_t chunks = 0;
    for (uint64_t round = 0; bytes_ < mib * kMiB; ++round) {
      const CaptureId capture = CaptureNumber(static_cast<char>(1 + round % 2));
      rocksdb::WriteBatch batch;
      for (uint32_t stream = 0; stream < kStreams; ++stream, ++chunks) {
        const std::string& value = values[chunks % values.size()];
        batch.Put(Handle(Family::kChunks), keys::Chunk(capture, stream, round), value);
        batch.Put(Handle(Family::kChunkIndex),
                  keys::ChunkIndex(capture, stream, round * 1000, round), std::string(80, 'i'));
        batch.Put(Handle(Family::kStreams), keys::Stream(capture, stream), std::string(300, 's'));
        bytes_ += static_cast<double>(value.size());
      }
      Check(db_->Write(options, &batch));
    }
    figures.write_mib_s = bytes_ / kMiB / SecondsSince(begin);
    Check(db_->Flush({}, handles_));
    figures.cpu_ns_event =
        (CpuSeconds() - cpu) * 1e9 / (static_cast<double>(chunks) * limits::kChunkEventsTarget);
    figures.disk_factor = BytesOnDisk(path_) / bytes_;
  }

  void Read(Figures& figures) {
    const auto begin = SteadyClock::now();
    double bytes = 0;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, Handle(Family::kChunks)));
    for (it->SeekToFirst(); it->Valid(); it->Next())
      bytes += static_cast<double>(it->value().size());
    Check(it->status());
    figures.read_mib_s = bytes / kMiB / SecondsSince(begin);
  }

  // As Database::DeleteRange and ReclaimSpace do.
  void Delete(Figures& figures) {
    const auto begin = SteadyClock::now();
    const std::string from = keys::Capture(CaptureNumber(1));
    const std::string to = keys::PrefixEnd(from);
    const rocksdb::Slice from_slice(from);
    const rocksdb::Slice to_slice(to);
    for (const Family family : {Family::kChunks, Family::kChunkIndex, Family::kStreams}) {
      Check(db_->DeleteRange({}, Handle(family), from, to));
      rocksdb::CompactRangeOptions compact;
      compact.exclusive_manual_compaction = false;
      compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
      Check(db_->CompactRange(compact, Handle(family), &from_slice, &to_slice));
    }
    Check(db_->Flush({}, handles_));
    Check(db_->DisableFileDeletions());
    Check(db_->EnableFileDeletions(true));
    figures.delete_seconds = SecondsSince(begin);
    figures.left_factor = BytesOnDisk(path_) / (bytes_ / 2);
  }

  const std::string path_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  double bytes_ = 0;
};

std::vector<Variant> Variants() {
  using Chunks = rocksdb::ColumnFamilyOptions;
  return {
      {"as the store has it", [](auto&, Chunks&) {}},
      {"no blob files", [](auto&, Chunks& c) { c.enable_blob_files = false; }},
      {"min_blob_size 1 KiB", [](auto&, Chunks& c) { c.min_blob_size = 1024; }},
      {"blob files of 64 MiB", [](auto&, Chunks& c) { c.blob_file_size = 64 * kMiB; }},
      {"blob files of 1 GiB", [](auto&, Chunks& c) { c.blob_file_size = 1024 * kMiB; }},
      {"blobs compressed with zstd",
       [](auto&, Chunks& c) { c.blob_compression_type = rocksdb::kZSTD; }},
      {"no blob garbage collection",
       [](auto&, Chunks& c) { c.enable_blob_garbage_collection = false; }},
      {"write buffer of 16 MiB", [](auto&, Chunks& c) { c.write_buffer_size = 16 * kMiB; }},
      {"write buffer of 256 MiB", [](auto&, Chunks& c) { c.write_buffer_size = 256 * kMiB; }},
      {"log of 64 MiB", [](rocksdb::DBOptions& o, Chunks&) { o.max_total_wal_size = 64 * kMiB; }},
      {"log of 1 GiB", [](rocksdb::DBOptions& o, Chunks&) { o.max_total_wal_size = 1024 * kMiB; }},
  };
}

double Median(std::vector<Figures>& runs, double Figures::*figure) {
  std::sort(runs.begin(), runs.end(),
            [&](const Figures& a, const Figures& b) { return a.*figure < b.*figure; });
  return runs[runs.size() / 2].*figure;
}

int Main(int argc, char** argv) {
  std::string store = (std::filesystem::temp_directory_path() / "store_bench").string();
  double mib = 512;
  int repetitions = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--store") store = argv[i + 1];
    if (option == "--mib") mib = std::strtod(argv[i + 1], nullptr);
    if (option == "--repetitions") repetitions = std::atoi(argv[i + 1]);
  }
  const std::vector<std::string> values = MakeValues();
  fmt::print(
      "| settings | write MiB/s | CPU ns/event | disk/chunks | read MiB/s | delete half, s | "
      "disk/chunks left |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Variant& variant : Variants()) {
    std::vector<Figures> runs;
    for (int i = 0; i < repetitions; ++i) runs.push_back(Run(store, variant).Measure(values, mib));
    fmt::print("| {} | {:.0f} | {:.1f} | {:.2f} | {:.0f} | {:.2f} | {:.2f} |\n", variant.name,
               Median(runs, &Figures::write_mib_s), Median(runs, &Figures::cpu_ns_event),
               Median(runs, &Figures::disk_factor), Median(runs, &Figures::read_mib_s),
               Median(runs, &Figures::delete_seconds), Median(runs, &Figures::left_factor));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
