// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/agent_clocks.h"
#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/control/control_session.h"
#include "agent/source/artifact/artifact_source.h"
#include "agent/source/framework/framework_source.h"
#include "agent/source/host/host_source.h"
#include "agent/source/neuron/tap/untapped_workers.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/source_metrics.h"
#include "agent/spool/spool.h"
#include "agent/triggers/agent_triggers.h"
#include "agent/upload/ack_watchdog.h"
#include "agent/upload/artifact_uploader.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/daemon/daemon_process.h"
#include "lib/daemon/program_log.h"
#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"
#include "lib/trace/agent_info.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

class AgentPods;

// Builds everything of one agent, connects it and owns it. All of it lives on one sequence, the
// thread that calls Run; the spool's disk, gRPC and HTTP have threads of their own.
// thread: main: sources, ranks, control and the uploader, on one event loop
// thread: spool: writes and syncs the disk of the spool
class Agent {
 public:
  // The process that it is in.
  struct Process {
    ProgramLog& log;  // outlives the agent
    // The configuration as the command line and the files say it now.
    std::function<absl::StatusOr<AgentConfig>()> read_config;
  };
  // Errors of the socket and of the health address, as they are said to people.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(const AgentConfig& config,
                                                       const AgentInfo& info,
                                                       const Process& process);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Works until one of the signals that `signal_fd` (signalfd(2)) reports. Then sources are read no
  // further, and what they gave is sent for as long as the drain time allows; what is left stays in
  // the spool, or, where there is none, with the workers, and the next agent continues with it.
  // SIGHUP ends nothing: the file of the configuration is read again.
  void Run(int signal_fd);

  int health_port() const { return process_.health_port(); }

 private:
  Agent(const AgentConfig& config, const AgentInfo& info, const Process& process);
  ControlSession::Hooks MakeControlHooks();
  absl::Status Start(const AgentConfig& config);
  // Begins to work once the spool is read; a directory that cannot be read, or that another agent
  // uses, is waited for.
  void OpenSpool();
  // Resumes the captures that the spool lists as running, unless an aggregator has listed them.
  void ResumeOffline();
  // Anything but OK: what lies in the spool is for an aggregator with another store.
  absl::Status CheckAggregator(const std::string& aggregator_id);
  void OnSignal(int signal_fd);
  void Drain(uint64_t deadline_ns);
  void LookAtUpload();
  void PublishMetrics();
  PostPage MakeTriggerPage(const AgentConfig& config);
  static DaemonProcess::Options ProcessOptions(const AgentConfig& config, const AgentInfo& info);
  ConfigReload::Hooks MakeReloadHooks(const Process& process);
  std::vector<StatusTable> StatusTables(const AgentInfo& info);
  void LookAtConfig();
  void DeclareConditions();

  uint64_t drain_ns_;
  const bool spool_adopts_;

  // In the order in which they are built.
  SystemClock clock_;
  SystemRandom random_;
  EventLoop loop_;
  LoopWatchdog turns_{clock_};  // of it
  EventLoop io_loop_;           // of the spool's disk
  std::thread io_thread_;
  SystemFileSystem files_;
  UnsyncedFileSystem unsynced_files_{files_};
  HealthState health_;
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  DaemonProcess process_;
  AgentSourceMetrics source_metrics_;
  std::unique_ptr<Spool> spool_;  // null: chunks stay in memory
  DeliveryQueue queue_;
  Uploader uploader_;
  ControlSession control_;
  AgentTriggers triggers_;
  TapSource taps_;
  std::unique_ptr<UntappedWorkers> untapped_;  // null: not looked for
  FrameworkSource framework_;
  HostSource host_;
  ArtifactUploader artifact_uploader_;
  ArtifactSource artifacts_;
  AckWatchdog answer_watch_;
  AgentClocks clocks_;  // works beside all of this
  AgentMetrics metrics_;
  std::unique_ptr<DiskRoom> spool_room_;  // null: there is no spool
  DeliveryMetrics delivery_metrics_;
  std::unique_ptr<AgentPods> pods_;  // null: the kubelet is not asked
  const uint64_t began_monotonic_ns_ = clock_.MonotonicNs();
  bool ending_ = false;
  uint64_t clocks_deadline_ns_ = 0;  // once it ends: for the last evidence
  bool welcomed_ = false;            // once, by the right aggregator
  bool started_ = false;
  std::string spool_problem_;  // as it was logged last
};

}  // namespace neurontrace
