// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/source/neuron/tap/fake_tap.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {

// For tests: the reports of a source, the newest of each kind.
class RecordingListener final : public SourceListener {
 public:
  void OnWorker(const WorkerInfo& worker) override { workers[worker.identity] = worker; }
  void OnWorkerGone(const WorkerIdentity& worker) override {
    workers.erase(worker);
    ++gone;
  }
  void OnCaptureWorker(const CaptureWorkerStatus& status) override {
    states.push_back(status.state);
    statuses[status.capture_id] = status;
  }
  std::map<WorkerIdentity, WorkerInfo> workers;
  std::map<CaptureId, CaptureWorkerStatus> statuses;
  std::vector<CaptureWorkerState> states;
  int gone = 0;
};

// A source in a world of fakes: time, the task runner, the sink, /proc and the tap; the sockets and
// the memory file are real.
class TapSourceTest : public ::testing::Test {
 protected:
  TapSourceTest() : runner_(clock_) {
    proc_ = ::testing::TempDir() + "/neurontrace_proc_" + std::to_string(getpid());
    SetProcessAlive(true);
    tap_.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    tap_.SetFacts(
        {{"process.command_line", "python train.py"},
         {"runtime.version", "2.31.24.0"},
         {"runtime.visible_cores", "4"},
         {"runtime.event_types", "nrt_execute,nc_exec_running,cc_running,nrt_tensor_free"},
         {"env.SLURM_JOB_ID", "4711"},
         {"communicator.1", "33 64 nrt_build_global_comm"}});
    MakeSource();
  }
  ~TapSourceTest() override { std::filesystem::remove_all(proc_); }

  // Also: the agent before this one is killed, and its connection with it.
  void MakeSource() {
    source_.reset();
    const RankResolver ranks = [this](std::span<const RankFacts> workers) {
      rank_facts_.assign(workers.begin(), workers.end());
      std::vector<RankResolution> all;
      for (const RankFacts& facts : workers) all.push_back(ResolveOne(facts));
      return all;
    };
    source_ = std::make_unique<TapSource>(
        TapSource::Options{.agent_id = "agent",
                           .instance_id = "i-0abc",
                           .boot_id = "boot",
                           .proc_root = proc_,
                           .read_host_instant = [this] { return Now(); },
                           .read_thread_cpu_ns = [this] { return thread_cpu_ns_ += turn_cpu_ns_; },
                           .read_peer_user = [this](int) { return user_; },
                           .closer_threads = 0},
        runner_, clock_, sink_, listener_, ranks, metrics_);
  }

  // Ranks by what was observed alone; and the place that `next_place_` says.
  RankResolution ResolveOne(const RankFacts& facts) const {
    RankResolution resolved;
    resolved.first_node_core = facts.first_node_core;
    if (facts.may_be_placed && !resolved.first_node_core) resolved.first_node_core = next_place_;
    for (uint32_t core = 0; core < facts.visible_cores; ++core) {
      CoreInfo& info = resolved.cores.emplace_back(CoreInfo{core, {}});
      const auto observed = facts.communicators.find(core);
      if (observed != facts.communicators.end()) {
        info.rank_evidence.push_back({RankSource::kCommunicator, observed->second.g_device_id,
                                      observed->second.g_device_count, ""});
      }
      const auto event = facts.event_gids.find(core);
      if (event != facts.event_gids.end()) {
        info.rank_evidence.push_back({RankSource::kEvent, event->second, 0, ""});
      }
      if (!info.rank_evidence.empty()) info.rank_evidence[0].guessed = guesses_;
    }
    return resolved;
  }

  // Raw runs beside monotonic, as on a machine that was suspended once.
  static constexpr uint64_t kRawBehindNs = 400'000'000;
  HostInstant Now() const {
    return {.raw_ns = clock_.MonotonicNs() - kRawBehindNs,
            .monotonic_ns = clock_.MonotonicNs(),
            .realtime_ns = clock_.RealtimeNs()};
  }
  // Returns a moment so far from now, as the aggregator names it.
  CaptureBegin In(int64_t ms) const {
    return {.host_raw_ns = Now().raw_ns + static_cast<uint64_t>(ms * 1'000'000)};
  }

  void SetProcessAlive(bool alive, uint64_t start_ticks = 98'765) {
    const std::string directory = proc_ + "/" + std::to_string(getpid());
    if (!alive) {
      std::filesystem::remove_all(directory);
      return;
    }
    std::filesystem::create_directories(directory);
    std::ofstream stat(directory + "/stat");
    stat << "1 (a (b) c) S";
    for (int field = 4; field < 22; ++field) stat << " 0";
    stat << " " << start_ticks << " 0 0\n";
    std::ofstream(directory + "/cgroup")
        << "0::/kubepods.slice/cri-containerd-" << std::string(64, 'a') << ".scope\n";
  }

  void Connect(const CaptureId& running = CaptureId()) {
    UniqueFd agent_end = tap_.Connect(running);
    agent_fd_ = agent_end.get();
    source_->AddConnection(std::move(agent_end));
    Deliver();
  }
  // Lets the source see what the tap sent, and read what it wrote.
  void Deliver() {
    runner_.FireWatch(agent_fd_);
    runner_.RunUntilIdle();
  }
  void Pass(uint64_t ms) { runner_.AdvanceNs(ms * 1'000'000); }

  // Starts a capture and has the tap accept it.
  void StartAndRecord() {
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
    const auto command = tap_.ReadCommand();
    ASSERT_TRUE(command);
    ASSERT_EQ(command->type, TapMessageType::kStart);
    tap_.SetState(TapState::kStreaming);
    tap_.WriteStarted(capture_);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
    Deliver();
  }
  // What the tap does about a STOP.
  void AnswerStop() {
    const auto command = tap_.ReadCommand();
    ASSERT_TRUE(command);
    ASSERT_EQ(command->type, TapMessageType::kStop);
    tap_.WriteStopped(capture_, TapStopReason::kCommand);
    tap_.SetState(TapState::kIdle);
    tap_.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
    Deliver();
  }

  static std::string Event(uint32_t core, uint64_t number, int64_t gid = -1) {
    return R"({"event_type":"nrt_execute","phase":"start","nc_idx":)" + std::to_string(core) +
           R"(,"nc_local_id":)" + std::to_string(number) + R"(,"worker_gid":)" +
           std::to_string(gid) + R"(,"data":{"n":)" + std::to_string(number) +
           R"(},"timestamp_ns":)" + std::to_string(1'000'000 + number) + "}";
  }
  // Returns a document of core `core` with the events from `first` on.
  static std::string Document(uint32_t core, uint64_t first, uint64_t count) {
    std::string json = R"({"events":[)";
    for (uint64_t i = first; i < first + count; ++i) {
      json += (i > first ? "," : "") + Event(core, i);
    }
    return json + R"(],"data_version":2})";
  }

  CaptureWorkerStatus status() { return listener_.statuses[capture_]; }
  uint64_t LostEvents(LossPlace place) const {
    uint64_t events = 0;
    for (const Loss& loss : sink_.Losses()) events += loss.place == place ? loss.events : 0;
    return events;
  }

  std::string proc_;
  FakeClock clock_;
  FakeTaskRunner runner_;
  RecordingSink sink_;
  RecordingListener listener_;
  AgentSourceMetrics metrics_;
  FakeTap tap_;
  std::optional<uid_t> user_ = getuid();  // who connects
  uint64_t thread_cpu_ns_ = 0;
  uint64_t turn_cpu_ns_ = 0;  // that each turn of the agent takes
  int agent_fd_ = -1;
  CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
  CaptureId other_ = *CaptureId::FromBytes("fedcba9876543210");
  std::optional<uint32_t> next_place_;
  bool guesses_ = false;
  std::vector<RankFacts> rank_facts_;  // of the last resolution
  std::unique_ptr<TapSource> source_;
};

}  // namespace neurontrace
