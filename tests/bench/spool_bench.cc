// SPDX-License-Identifier: Apache-2.0
// The agent's spool on a real disk: what appending costs until a chunk is durable, at several sizes
// of what waits, and how long an agent reads a full spool when it starts. NT_SPOOL_BENCH_DIR names
// a directory on the disk to measure; /var/tmp otherwise.
//   append    chunks of 4,096 events (40 KiB), so many of them under way at a time
//   restart   reads a spool of so many MiB of such chunks
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agent/spool/spool.h"
#include "lib/base/event_loop.h"
#include "lib/wire/chunk_envelope.h"

namespace neurontrace {
namespace {

constexpr uint32_t kEvents = 4'096;
constexpr size_t kColumnsBytes = 40u << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class Directory {
 public:
  Directory() {
    const char* const named = std::getenv("NT_SPOOL_BENCH_DIR");
    std::string pattern =
        std::string(named != nullptr ? named : "/var/tmp") + "/spool_bench.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A spool with its two threads, and a stream of chunks for it.
class World final : public Spool::Listener {
 public:
  explicit World(const std::string& directory)
      : capture_(CaptureId::Make(clock_, random_)),
        spool_({.directory = directory,
                .agent_id = "agent",
                .bytes_max = 4'096 * kMiB,
                .capture_bytes_max = 4'096 * kMiB},
               files_, io_, loop_, clock_, random_),
        io_thread_([this] { io_.Run(); }) {
    spool_.SetListener(this);
  }
  ~World() override {
    io_.PostTask([this] { io_.Quit(); });
    io_thread_.join();
  }

  uint64_t Recover() {
    uint64_t found = 0;
    const absl::Status status =
        spool_.Recover({[](const CaptureId&, const SpoolCursor&) {},
                        [&](const ChunkHeader&, const SpoolPlace&) { ++found; }});
    if (!status.ok()) std::abort();
    return found;
  }
  // Appends `chunks`, with `in_progress` of them waiting for the disk at most, until all are kept.
  void Append(uint64_t chunks, uint64_t in_progress) {
    left_ = chunks;
    to_keep_ = chunks;
    loop_.PostTask([this, in_progress] {
      for (uint64_t i = 0; i < in_progress; ++i) Next();
    });
    loop_.Run();
  }

  void OnKept(const SpoolTicket& ticket, const SpoolPlace&) override {
    waiting_.erase(ticket.sequence);
    if (--to_keep_ == 0) return loop_.Quit();
    Next();
  }
  void OnHealth(const absl::Status& health) override {
    if (!health.ok()) std::abort();
  }
  void OnSegmentDropped(const CaptureId&, uint64_t) override { std::abort(); }
  std::map<StreamIdentity, SpoolCursor::Stream> StreamsOf(const CaptureId&) override { return {}; }
  bool CursorsAreExact() override { return true; }

 private:
  void Next() {
    if (left_ == 0) return;
    --left_;
    Chunk chunk;
    chunk.header.capture_id = capture_;
    chunk.header.stream = {.agent_id = "agent",
                           .worker = {.instance_id = "i-1", .boot_id = "boot", .pid = 1},
                           .kind = StreamKind::kNeuronCore};
    chunk.header.sequence = sequence_;
    chunk.header.event_count = kEvents;
    chunk.header.columns_bytes = 1;
    chunk.columns.assign(kColumnsBytes, static_cast<char>(sequence_));
    auto envelope = std::make_shared<v1::ChunkEnvelope>();
    ToEnvelope(std::move(chunk), 1, envelope.get());
    spool_.Append(capture_, {1, sequence_}, envelope);
    waiting_[sequence_++] = std::move(envelope);
  }

  SystemClock clock_;
  SystemRandom random_;
  SystemFileSystem files_;
  EventLoop loop_;
  EventLoop io_;
  const CaptureId capture_;
  Spool spool_;
  std::map<uint64_t, std::shared_ptr<v1::ChunkEnvelope>> waiting_;
  uint64_t sequence_ = 0;
  uint64_t left_ = 0;
  uint64_t to_keep_ = 0;
  std::thread io_thread_;
};

void BM_Append(benchmark::State& state) {
  constexpr uint64_t kChunks = 2'000;
  for (auto _ : state) {
    state.PauseTiming();
    const Directory directory;
    auto world = std::make_unique<World>(directory.path());
    world->Recover();
    state.ResumeTiming();
    world->Append(kChunks, static_cast<uint64_t>(state.range(0)));
    state.PauseTiming();
    world.reset();
    state.ResumeTiming();
  }
  const auto chunks = static_cast<double>(state.iterations() * kChunks);
  state.counters["events"] = benchmark::Counter(chunks * kEvents, benchmark::Counter::kIsRate);
  state.counters["bytes"] = benchmark::Counter(chunks * kColumnsBytes, benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Append)
    ->Name("spool/append")
    ->Arg(1)
    ->Arg(16)
    ->Arg(256)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_Restart(benchmark::State& state) {
  const Directory directory;
  const uint64_t chunks = static_cast<uint64_t>(state.range(0)) * kMiB / kColumnsBytes;
  {
    World world(directory.path());
    world.Recover();
    world.Append(chunks, 256);
  }
  for (auto _ : state) {
    World world(directory.path());
    if (world.Recover() != chunks) std::abort();
  }
  state.counters["chunks"] = static_cast<double>(chunks);
}
BENCHMARK(BM_Restart)
    ->Name("spool/restart")
    ->Arg(64)
    ->Arg(1'024)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
