// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/agent_clocks.h"
#include "agent/agent_metrics.h"
#include "agent/agent_stacks.h"
#include "agent/config.h"
#include "agent/control/control_observer.h"
#include "agent/control/control_session.h"
#include "agent/delivery_metrics.h"
#include "agent/disk_room.h"
#include "agent/source/annotate/annotation_source.h"
#include "agent/source/artifact/artifact_source.h"
#include "agent/source/framework/framework_source.h"
#include "agent/source/framework/on_demand/kineto_recorder.h"
#include "agent/source/framework/on_demand/kineto_socket.h"
#include "agent/source/framework/xla/xla_recorder.h"
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
#include "lib/base/unsynced_file_system.h"
#include "lib/daemon/config_reload.h"
#include "lib/daemon/daemon_process.h"
#include "lib/daemon/program_log.h"
#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"
#include "lib/health/post_page.h"
#include "lib/trace/agent_info.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

class AgentPods;

// The composition root of neurontrace-agent: builds every component of one agent, connects them,
// and owns them all. As the observer of the control session it passes what the aggregator wants to
// the uploader, the queue, the triggers and the clocks. There is one agent per process.
//
// All components live on one sequence, the thread that calls Run, and use no locks among each
// other. Only what may block is elsewhere: the spool's disk (io_thread_), clock measurements
// (AgentClocks), the kubelet (AgentPods), gRPC and the HTTP server of DaemonProcess. Those hand
// their results back as tasks on loop_.
//
// Every problem that can occur at the start is the status of Create. Later problems (aggregator
// unreachable, disk full, a tap that misbehaves) never end the agent: they become a condition of
// /readyz and a metric, and the work is tried again.
// thread: main: sources, ranks, control and the uploader, on one event loop
// thread: spool: writes and syncs the disk of the spool
class Agent final : private ControlObserver, private PostHandler {
 public:
  // What main() provides: the process that this agent runs in.
  struct Process {
    ProgramLog& log;  // outlives the agent
    // Reads the configuration again, from the command line, the environment and the files as they
    // are now. Called on the agent's sequence when a file changed or on SIGHUP; an error keeps the
    // configuration that is in force.
    std::function<absl::StatusOr<AgentConfig>()> read_config;
  };
  // Builds the agent and opens its socket and its health address. Fails with the errors of
  // CheckAgentConfig, and if either address cannot be used; the message names the option for the
  // person who reads it. Nothing is recorded before Run.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(const AgentConfig& config,
                                                       const AgentInfo& info,
                                                       const Process& process);
  // Stops the HTTP pages, then joins the spool's thread. To be called after Run has returned, as no
  // component may receive a task while it is being destroyed. Waits for the task that the spool's
  // thread is running.
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Works until a signal that `signal_fd` (signalfd(2), owned by the caller) reports. The first
  // SIGTERM or SIGINT stops reading from the sources and sends what they have given for up to the
  // drain time (--drain-seconds). What is left stays in the spool, or, without a spool, in the
  // buffers of the workers' taps, where the next agent continues. A second signal ends Run at once.
  // SIGHUP reads the configuration file again and ends nothing. Blocks, and is called once, on the
  // thread that called Create.
  void Run(int signal_fd);

  // Returns the TCP port of the health address; differs from the configured one if that was 0.
  int health_port() const { return process_.health_port(); }

 private:
  Agent(const AgentConfig& config, const AgentInfo& info, const Process& process);
  absl::Status Start(const AgentConfig& config);
  // Begins to answer PyTorch's workers, if --kineto-dir is given. Fails with the error of
  // KinetoSocket::Listen, or if the group is not known.
  absl::Status ListenToKineto(const AgentConfig& config);
  // Reads the spool's directory and then connects to the aggregator. Tries again every second while
  // the directory may hold chunks and cannot be read, or another agent uses it: what lies there
  // must be known before streams continue.
  void OpenSpool();
  // Resumes the captures that the spool lists as running, so that an agent that restarts while the
  // aggregator is unreachable continues to record. Does nothing once an aggregator has sent its own
  // list.
  void ResumeOffline();

  // ControlObserver
  void OnWelcome(const std::set<CaptureId>& captures) override;
  void OnConnectionLost() override;
  absl::Status CheckAggregator(const std::string& aggregator_id) override;
  bool WasWronglyResumed(const CaptureResume& resume) override;
  void OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) override;
  void OnRecordingChanged() override;
  void OnCaptureStopping() override;
  void OnCaptureOver(const CaptureId& capture_id) override;
  void AddSpoolCursors(CaptureResume& resume) override;
  bool IsDelivered(const CaptureId& capture_id) const override;
  void OnTriggers(const std::vector<TriggerRule>& rules, uint64_t version) override;
  void OnCollectStacks(const StacksOrder& order) override;

  // Fails with FAILED_PRECONDITION if the spool holds chunks for an aggregator with another store
  // and --spool-adopt is not given. Otherwise records `aggregator_id` as the owner of the spool.
  absl::Status ClaimSpool(const std::string& aggregator_id);
  // Handles one signal; see Run. Called when `signal_fd` is readable.
  void OnSignal(int signal_fd);
  // Waits until every chunk is acknowledged or in the spool, at most until `deadline_ns`
  // (monotonic), then stops control, upload and spool, and ends the loop. Polls, as three
  // independent parties have to become ready.
  void Drain(uint64_t deadline_ns);
  // Sets the condition "upload": fails if chunks wait and no acknowledgement has arrived for a
  // while.
  void PollUpload();
  // Copies all counters into the Prometheus registry and sets the conditions of /readyz. Once a
  // second. Also proves to LoopWatchdog that the sequence is alive.
  void PublishMetrics();
  // Returns the page POST /triggers/NAME, which refers to this agent.
  PostPage MakeTriggerPage(const AgentConfig& config);
  // PostHandler. Called on the HTTP server's threads; waits for the sequence.
  PostAnswer TakePost(const PostRequest& request) override;
  static DaemonProcess::Options ProcessOptions(const AgentConfig& config, const AgentInfo& info);
  // Returns the hooks of a reload: the agent applies the drain time; the shared hooks apply the
  // options of the log.
  ConfigReload::Hooks MakeReloadHooks(const Process& process);
  // Returns the tables of the status page, made on the sequence.
  std::vector<StatusTable> StatusTables(const AgentInfo& info);
  // Applies changed files of the configuration, every two seconds.
  void PollConfig();
  // Declares the conditions of /readyz and /healthz before the pages are served, so that a probe
  // that comes early is answered with "not yet" rather than with success.
  void DeclareConditions();

  // --drain-seconds; may change while the agent runs.
  uint64_t drain_ns_;
  const bool spool_adopts_;

  // In the order in which they are built: each may refer to those above it, and destruction in
  // reverse order ends the users first.
  SystemClock clock_;
  SystemRandom random_;
  EventLoop loop_;
  LoopWatchdog turns_{clock_};  // of it
  EventLoop io_loop_;           // of the spool's disk
  std::thread io_thread_;
  SystemFileSystem files_;
  UnsyncedFileSystem unsynced_files_{files_};
  // Conditions of /readyz and /healthz, which the HTTP thread reads.
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
  KinetoRecorder kineto_;
  std::unique_ptr<XlaRecorder> xla_;  // null: no --framework-dir with an absolute path
  FrameworkSource framework_;
  std::unique_ptr<KinetoSocket> kineto_socket_;  // null: no --kineto-dir
  HostSource host_;
  AnnotationSource annotations_;
  ArtifactUploader artifact_uploader_;
  ArtifactSource artifacts_;
  AckWatchdog answer_watch_;
  AgentClocks clocks_;  // works beside all of this
  AgentMetrics metrics_;
  std::unique_ptr<DiskRoom> spool_room_;  // null: there is no spool
  DeliveryMetrics delivery_metrics_;
  std::unique_ptr<AgentPods> pods_;  // null: the kubelet is not asked
  AgentStacks stacks_;
  const uint64_t began_monotonic_ns_ = clock_.MonotonicNs();
  bool ending_ = false;
  uint64_t clocks_deadline_ns_ = 0;  // once it ends: for the last evidence
  bool welcomed_ = false;            // once, by the right aggregator
  bool started_ = false;
  std::string spool_problem_;  // as it was logged last
};

}  // namespace neurontrace
