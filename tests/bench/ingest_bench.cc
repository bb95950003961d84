// SPDX-License-Identifier: Apache-2.0
// Chunks into a whole aggregator over loopback: validated, stored with sync, acknowledged. The
// aggregator is the program itself, in a process of its own, so that its processor time and memory
// are told apart from the clients'. Prints one line a case; asserts nothing on time.
//
//   ingest_bench [--store DIR] [--million-events N] [--repetitions N]
//   ingest_bench --watch-pairs PAIRS [--store DIR] [--million-events N] [--rate
//   MILLION_EVENTS_A_SECOND]
//
// The second form asks what verdicts while the fleet runs cost: it sends the same chunks into a
// continuous capture and into a watch in turns, and prints both and their ratio for each pair.
// Without a rate, chunks come as fast as they are acknowledged, which is more than the watch can
// read: it drops what it has no time for. The first form runs every number of connections and
// streams at N, 10 N and 100 N million events (N is 1), and then two cases each at half the highest
// rate and at half of what is aimed at, for the time from sending a chunk to its acknowledgement.
// Figures are medians over the repetitions (1), each for itself.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/steady_clock.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/limits.h"
#include "lib/trace/watch_limits.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/grpc_channel.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"
#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& why) {
  fmt::print(stderr, "ingest_bench: {}\n", why);
  std::exit(1);
}

// Chunks as an agent would send them, but for stream and sequence.
std::vector<Chunk> MakeChunks(size_t count) {
  std::vector<Chunk> chunks;
  EventMix mix(1, 0, EventMix::Memory::kDefault);
  EventChunkBuilder builder;
  for (size_t i = 0; i < count; ++i) {
    std::vector<EventChunkBuilder::ShapeId> shape_ids;
    const auto events = mix.Take(limits::kChunkEventsTarget);
    if (!AppendMix(mix, events, shape_ids, builder).ok()) Fail("the mix does not fit a chunk");
    const EncodedColumns encoded = builder.Finish();
    Chunk chunk;
    chunk.header.event_count = encoded.event_count;
    chunk.header.first_timestamp_ns = encoded.first_timestamp_ns;
    chunk.header.last_timestamp_ns = encoded.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(encoded.bytes.size());
    chunk.columns = CompressColumns(encoded.bytes);
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

struct Case {
  int connections = 1;
  int streams = 1;  // in all
  uint64_t chunks = 0;
  double chunks_per_second = 0;  // 0: as fast as acknowledgements come
  // Each stream gets the chunks one after the other, in the order of their times.
  bool is_in_order = false;
  v1::CaptureSpec spec;
};

struct Result {
  double seconds = 0;
  double cpu_seconds = 0;  // the aggregator's
  double peak_mib = 0;     // the same
  uint64_t events = 0;
  uint64_t bytes = 0;
  std::vector<double> latencies_ms;
};

// An agent's Control call, in which it reports one worker that records, so that the aggregator
// knows of whom the chunks are.
class ControlCall {
 public:
  ControlCall(const std::string& address, CaptureId capture, const std::string& agent_id)
      : stub_(v1::AgentGateway::NewStub(MakeChannel(address, {}))) {
    context_.AddMetadata("neurontrace-agent-id", agent_id);
    call_ = stub_->Control(&context_);
    v1::AgentReport report;
    v1::AgentHello& hello = *report.mutable_hello();
    hello.set_protocol_version(kProtocolVersion);
    hello.set_agent_id(agent_id);
    hello.set_instance_id("i-" + agent_id);
    hello.set_boot_id("b");
    Write(report);
    v1::AgentOrder welcome;
    if (!call_->Read(&welcome)) Fail("no welcome: " + call_->Finish().error_message());
    v1::WorkerIdentity worker;
    worker.set_instance_id("i-" + agent_id);
    worker.set_boot_id("b");
    worker.set_pid(1);
    *report.mutable_worker()->mutable_identity() = worker;
    report.mutable_worker()->set_state(v1::WORKER_STATE_STREAMING);
    report.mutable_worker()->set_job("bench");
    Write(report);
    report.mutable_capture_worker()->set_capture_id(std::string(capture.bytes()));
    *report.mutable_capture_worker()->mutable_worker() = worker;
    report.mutable_capture_worker()->set_state(v1::CAPTURE_WORKER_STATE_RECORDING);
    Write(report);
    reader_ = std::thread([this] {
      v1::AgentOrder order;
      while (call_->Read(&order)) continue;
    });
  }
  ~ControlCall() {
    context_.TryCancel();
    reader_.join();
  }
  ControlCall(const ControlCall&) = delete;
  ControlCall& operator=(const ControlCall&) = delete;

 private:
  void Write(const v1::AgentReport& report) {
    if (!call_->Write(report)) Fail("the call broke: " + call_->Finish().error_message());
  }

  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentReport, v1::AgentOrder>> call_;
  std::thread reader_;
};

// One agent with one Upload call.
class Client {
 public:
  Client(const std::string& address, const std::vector<Chunk>& chunks, CaptureId capture,
         int number, int streams, bool is_in_order)
      : chunks_(chunks),
        is_in_order_(is_in_order),
        capture_(capture),
        agent_id_(fmt::format("agent-{}", number)),
        next_(streams),
        acked_(streams),
        stub_(v1::AgentGateway::NewStub(MakeChannel(address, {}))) {
    context_.AddMetadata("neurontrace-agent-id", agent_id_);
    call_ = stub_->Upload(&context_);
    reader_ = std::thread([this] { ReadAcks(); });
  }
  ~Client() { reader_.join(); }

  void Send(uint64_t count, double chunks_per_second) {
    const auto begin = SteadyClock::now();
    sent_at_.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      if (chunks_per_second > 0) {
        const std::chrono::duration<double> due(static_cast<double>(i) / chunks_per_second);
        std::this_thread::sleep_until(  // tidy: poll
            begin + std::chrono::duration_cast<SteadyClock::duration>(due));
      }
      const int stream = static_cast<int>(i % next_.size());
      Chunk chunk = chunks_[(is_in_order_ ? i / next_.size() : i) % chunks_.size()];
      chunk.header.capture_id = capture_;
      chunk.header.stream.agent_id = agent_id_;
      chunk.header.stream.worker = {.instance_id = "i-" + agent_id_, .boot_id = "b", .pid = 1};
      chunk.header.stream.kind = StreamKind::kNeuronCore;
      chunk.header.stream.nc_idx = static_cast<uint32_t>(stream);
      chunk.header.sequence = next_[stream]++;
      events += chunk.header.event_count;
      bytes += chunk.columns.size();
      v1::ChunkEnvelope envelope;
      ToEnvelope(std::move(chunk), static_cast<uint32_t>(stream), &envelope);
      {
        std::unique_lock lock(mutex_);
        acknowledged_.wait(lock, [&] { return i - acked_chunks_ < limits::kUnackedChunksMax; });
        sent_at_[i] = SteadyClock::now();
      }
      if (!call_->Write(envelope)) Fail("the call broke: " + call_->Finish().error_message());
    }
    call_->WritesDone();
    std::unique_lock lock(mutex_);
    acknowledged_.wait(lock, [&] { return acked_chunks_ == count; });
  }

  const std::string& agent_id() const { return agent_id_; }

  uint64_t events = 0;
  uint64_t bytes = 0;
  std::vector<double> latencies_ms;  // after Send

 private:
  void ReadAcks() {
    v1::UploadAck ack;
    while (call_->Read(&ack)) {
      if (ack.refusal() != v1::REFUSAL_CODE_NONE) Fail("refused: " + ack.message());
      const auto now = SteadyClock::now();
      const std::lock_guard lock(mutex_);
      uint64_t& acked = acked_[ack.stream_ref()];
      for (; acked < ack.next_sequence(); ++acked, ++acked_chunks_) {
        const auto sent = sent_at_[acked * acked_.size() + ack.stream_ref()];
        latencies_ms.push_back(std::chrono::duration<double, std::milli>(now - sent).count());
      }
      acknowledged_.notify_one();
    }
  }

  const std::vector<Chunk>& chunks_;
  const bool is_in_order_;
  const CaptureId capture_;
  const std::string agent_id_;
  std::vector<uint64_t> next_;

  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::vector<uint64_t> acked_;                   // guarded by mutex_, by stream
  uint64_t acked_chunks_ = 0;                     // guarded by mutex_
  std::vector<SteadyClock::time_point> sent_at_;  // guarded by mutex_, by number of the chunk

  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ChunkEnvelope, v1::UploadAck>> call_;
  std::thread reader_;
};

// The program, until its end.
class AggregatorProcess {
 public:
  explicit AggregatorProcess(const std::string& store) {
    std::array<int, 2> out{};
    if (pipe(out.data()) != 0) Fail("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // when the benchmark fails
      execl(NEURONTRACE_AGGREGATOR, NEURONTRACE_AGGREGATOR, "--listen", "127.0.0.1:0", "--store",
            store.c_str(), "--health-address", "127.0.0.1:0", nullptr);
      _exit(127);
    }
    close(out[1]);
    std::array<char, 256> line{};
    FILE* const lines = fdopen(out[0], "r");
    constexpr std::string_view kPrefix = "listening on ";
    while (address_.empty()) {
      if (std::fgets(line.data(), line.size(), lines) == nullptr) Fail("the aggregator ended");
      const std::string text = line.data();
      if (text.starts_with(kPrefix)) {
        address_ = text.substr(kPrefix.size(), text.find('\n') - kPrefix.size());
      }
    }
    std::fclose(lines);
  }
  ~AggregatorProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  AggregatorProcess(const AggregatorProcess&) = delete;
  AggregatorProcess& operator=(const AggregatorProcess&) = delete;

  const std::string& address() const { return address_; }

  // User and system time so far.
  double CpuSeconds() const {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
    std::string word;
    double ticks = 0;
    for (int field = 1; field <= 15 && stat >> word; ++field) {
      if (field >= 14) ticks += std::strtod(word.c_str(), nullptr);
    }
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  double PeakResidentMib() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
    }
    return 0;
  }

 private:
  pid_t pid_ = 0;
  std::string address_;
};

CaptureId StartCapture(const std::string& address, const v1::CaptureSpec& spec) {
  const auto stub = v1::OperatorService::NewStub(MakeChannel(address, {}));
  grpc::ClientContext context;
  v1::StartCaptureRequest request;
  *request.mutable_spec() = spec;
  request.mutable_spec()->set_include_neuron(true);
  v1::Capture capture;
  const grpc::Status status = stub->StartCapture(&context, request, &capture);
  if (!status.ok()) Fail("no capture: " + status.error_message());
  return *CaptureId::Parse(capture.capture_id());
}

// Waits until the running watch has read chunks of so many cores.
void WaitForWatchedCores(const std::string& address, int count) {
  const auto stub = v1::OperatorService::NewStub(MakeChannel(address, {}));
  const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
  for (v1::InsightReport report; static_cast<int>(report.cores()) < count;) {
    if (SteadyClock::now() > give_up) Fail("the watch has not read all streams");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // tidy: poll
    grpc::ClientContext context;
    const grpc::Status status = stub->Explain(&context, {}, &report);
    if (!status.ok()) Fail("no watch: " + status.error_message());
  }
}

// Waits until the aggregator has these workers in the capture, and has looked at them.
void WaitForWorkers(const std::string& address, CaptureId capture, size_t count) {
  const auto stub = v1::OperatorService::NewStub(MakeChannel(address, {}));
  v1::CaptureReference reference;
  reference.set_capture_id(capture.ToString());
  const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
  for (v1::Capture record; static_cast<size_t>(record.workers_size()) < count;) {
    if (SteadyClock::now() > give_up) Fail("the workers do not take part");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // tidy: poll
    grpc::ClientContext context;
    const grpc::Status status = stub->GetCapture(&context, reference, &record);
    if (!status.ok()) Fail("no capture: " + status.error_message());
  }
  // The watch reads chunks of workers that it has looked at, which it does as often as that.
  std::this_thread::sleep_for(  // tidy: allow(sleep) nothing shows that it has looked
      std::chrono::nanoseconds(2 * limits::kWatchJudgeMaxNs));
}

Result Run(const std::string& store, const std::vector<Chunk>& chunks, const Case& test) {
  std::filesystem::remove_all(store);
  const AggregatorProcess aggregator(store);
  const std::string& address = aggregator.address();
  const CaptureId capture = StartCapture(address, test.spec);
  const bool is_continuous = test.spec.mode() == v1::CAPTURE_MODE_CONTINUOUS;
  Result result;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < test.connections; ++i) {
    clients.push_back(std::make_unique<Client>(address, chunks, capture, i,
                                               test.streams / test.connections, test.is_in_order));
  }
  std::vector<std::unique_ptr<ControlCall>> controls;
  for (const auto& client : clients) {
    if (!is_continuous) break;
    controls.push_back(std::make_unique<ControlCall>(address, capture, client->agent_id()));
  }
  if (is_continuous) WaitForWorkers(address, capture, controls.size());
  const double cpu_before = aggregator.CpuSeconds();
  const auto begin = SteadyClock::now();
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&] {
      client->Send(test.chunks / test.connections, test.chunks_per_second / test.connections);
    });
  }
  for (std::thread& thread : threads) thread.join();
  result.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  result.cpu_seconds = aggregator.CpuSeconds() - cpu_before;
  result.peak_mib = aggregator.PeakResidentMib();
  for (const auto& client : clients) {
    result.events += client->events;
    result.bytes += client->bytes;
    result.latencies_ms.insert(result.latencies_ms.end(), client->latencies_ms.begin(),
                               client->latencies_ms.end());
  }
  clients.clear();
  if (test.spec.watch()) WaitForWatchedCores(address, test.streams);
  return result;
}

double Percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const size_t at = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// One row of figures, in the order of the table.
using Row = std::array<double, 7>;

Row Figures(Result result) {
  const double events = static_cast<double>(result.events);
  return {events / 1e6,
          events / result.seconds / 1e6,
          result.cpu_seconds * 1e9 / events,
          static_cast<double>(result.bytes) / events,
          Percentile(result.latencies_ms, 0.5),
          Percentile(result.latencies_ms, 0.99),
          result.peak_mib};
}

// Runs a case so many times and prints its medians; gives the rate.
double Measure(const std::string& store, const std::vector<Chunk>& chunks, const Case& test,
               int repetitions) {
  std::vector<Row> rows;
  for (int i = 0; i < repetitions; ++i) rows.push_back(Figures(Run(store, chunks, test)));
  Row median;
  for (size_t figure = 0; figure < median.size(); ++figure) {
    std::sort(rows.begin(), rows.end(),
              [&](const Row& a, const Row& b) { return a[figure] < b[figure]; });
    median[figure] = rows[rows.size() / 2][figure];
  }
  const auto& [events, rate, cpu, bytes, p50, p99, peak] = median;
  fmt::print("| {} | {} | {:.1f} | {:.2f} | {:.0f} | {:.1f} | {:.2f} | {:.2f} | {:.0f} |\n",
             test.connections, test.streams, events, rate, cpu, bytes, p50, p99, peak);
  std::fflush(stdout);
  return rate;
}

constexpr double kGoal = 15;  // M events/s, acknowledged

double MedianOf(std::vector<double> values) { return Percentile(values, 0.5); }

// Runs the same ingest without and with a watch in turns, and prints the ratios.
void MeasureWatch(const std::string& store, uint64_t count, int pairs, double million_a_second) {
  constexpr int kConnections = 4;
  constexpr int kStreams = 32;
  const uint64_t chunks_a_stream = count / kStreams + 1;
  const std::vector<Chunk> chunks = MakeChunks(chunks_a_stream);
  Case test{.connections = kConnections,
            .streams = kStreams,
            .chunks = chunks_a_stream * kStreams,
            .chunks_per_second = million_a_second * 1e6 / limits::kChunkEventsTarget,
            .is_in_order = true};
  test.spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  test.spec.set_retention_ns(limits::kWatchKeepNs);
  fmt::print(
      "| pair | M events/s | with a watch | ratio | aggregator ns CPU/event | with a watch | ratio "
      "|\n| --- | --- | --- | --- | --- | --- | --- |\n");
  std::vector<double> rates;
  std::vector<double> costs;
  for (int pair = 1; pair <= pairs; ++pair) {
    test.spec.set_watch(false);
    const Row without = Figures(Run(store, chunks, test));
    test.spec.set_watch(true);
    const Row with = Figures(Run(store, chunks, test));
    rates.push_back(with[1] / without[1]);
    costs.push_back(with[2] / without[2]);
    fmt::print("| {} | {:.2f} | {:.2f} | {:.3f} | {:.0f} | {:.0f} | {:.3f} |\n", pair, without[1],
               with[1], rates.back(), without[2], with[2], costs.back());
    std::fflush(stdout);
  }
  fmt::print("\nmedian ratio of the rates {:.3f}, of the processor time {:.3f}\n", MedianOf(rates),
             MedianOf(costs));
}

int Main(int argc, char** argv) {
  std::string store = (std::filesystem::temp_directory_path() / "ingest_bench_store").string();
  double million_events = 1;
  int repetitions = 1;
  int watch_pairs = 0;
  double rate = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--store") store = argv[i + 1];
    if (option == "--million-events") million_events = std::strtod(argv[i + 1], nullptr);
    if (option == "--repetitions") repetitions = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--watch-pairs") watch_pairs = std::atoi(argv[i + 1]);
    if (option == "--rate") rate = std::strtod(argv[i + 1], nullptr);
  }
  if (watch_pairs > 0) {
    const double count = million_events * 1e6 / limits::kChunkEventsTarget;
    MeasureWatch(store, static_cast<uint64_t>(count), watch_pairs, rate);
    std::filesystem::remove_all(store);
    return 0;
  }
  const std::vector<Chunk> chunks = MakeChunks(64);
  fmt::print(
      "| connections | streams | M events | M events/s | aggregator ns CPU/event | bytes/event | "
      "ack p50 ms | ack p99 ms | aggregator peak MiB |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  double best = 0;
  for (const double scale : {1.0, 10.0, 100.0}) {
    const double wanted = million_events * scale * 1e6 / limits::kChunkEventsTarget;
    const uint64_t count = (static_cast<uint64_t>(wanted) / 32 + 1) * 32;
    for (const auto& [connections, streams] : {std::pair(1, 1), {1, 32}, {32, 32}}) {
      const Case test{.connections = connections, .streams = streams, .chunks = count};
      best = std::max(best, Measure(store, chunks, test, repetitions));
    }
  }
  for (const auto& [name, rate] :
       {std::pair("half the highest rate", best / 2), {"half the goal", kGoal / 2}}) {
    const double chunks_a_second = rate * 1e6 / limits::kChunkEventsTarget;
    const uint64_t count = (static_cast<uint64_t>(chunks_a_second * 5) / 32 + 1) * 32;
    fmt::print("\nAt {}, {:.1f} M events/s:\n\n", name, rate);
    for (const int connections : {1, 32}) {
      Measure(store, chunks,
              Case{.connections = connections,
                   .streams = 32,
                   .chunks = count,
                   .chunks_per_second = chunks_a_second},
              repetitions);
    }
  }
  std::filesystem::remove_all(store);
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
