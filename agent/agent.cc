// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <span>
#include <string_view>

#include "agent/disk_room.h"
#include "agent/grpc_streams.h"
#include "agent/pods/kubelet_client.h"
#include "agent/pods/pod_attribution.h"
#include "agent/pods/pod_resolver.h"
#include "agent/pods/pod_workers.h"
#include "agent/ranks/rank_resolver.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/daemon/config_reload.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/state_names.h"
#include "lib/trace/trigger_limits.h"
#include "lib/wire/grpc_channel.h"

// This file has the order in which components are built and connected, and what passes between
// them. What each of them does is in its own header.
namespace neurontrace {
namespace {

// How often metrics and conditions are brought up to date.
constexpr uint64_t kPublishNs = 1'000'000'000;
// Short against the time of an acknowledgement, so that polling does not prolong a clean stop.
constexpr uint64_t kDrainPollNs = 20'000'000;
// Names of conditions as /readyz and the metric neurontrace_agent_ready_condition show them.
constexpr char kAggregatorCondition[] = "aggregator";
constexpr char kSocketCondition[] = "socket";
constexpr char kDataFlowCondition[] = "data flow";
constexpr char kSpoolCondition[] = "spool";
constexpr char kUploadCondition[] = "upload";
constexpr char kSequenceCondition[] = "sequence";
// An aggregator that answers nothing for so long is called slow.
constexpr uint64_t kAnswerWaitMaxNs = 10'000'000'000;
// The pause between attempts to read the spool.
constexpr uint64_t kSpoolRetryNs = 1'000'000'000;
// How long a stop waits for the last clock evidence. Without it the aggregator aligns the last
// seconds of a capture by extrapolation, with wider bounds, so it is worth one second but no more.
constexpr uint64_t kLastEvidenceNs = 1'000'000'000;
// How long a stop waits for the spool's last write. A disk that hangs must not keep the process
// alive; the cursors that are lost with it cost only that chunks are sent twice.
constexpr uint64_t kLastCursorsNs = 2'000'000'000;

// agent/source must not include agent/ranks (tools/layers.txt), so the two are connected here.
RankResolver MakeRankResolver(const ConfiguredRanks& configured) {
  return
      [configured](std::span<const RankFacts> workers) { return ResolveNode(workers, configured); };
}

// Returns the tap source's part of the configuration.
TapSource::Options TapOptions(const AgentConfig& config, const AgentInfo& info) {
  TapSource::Options options;
  options.server.path = config.socket;
  options.server.mode = config.socket_mode;
  options.agent_id = info.agent_id;
  options.instance_id = info.instance_id;
  options.boot_id = info.boot_id;
  options.with_arguments = config.command_arguments;
  return options;
}

// Returns the file system that --spool-durability asks for.
FileSystem& FilesOf(const AgentConfig& config, FileSystem& synced, FileSystem& unsynced) {
  if (config.spool_syncs) return synced;
  return unsynced;
}

// Returns the spool of the configuration; null for `--spool none`. All references outlive it.
std::unique_ptr<Spool> MakeSpool(const AgentConfig& config, const AgentInfo& info,
                                 FileSystem& files, TaskRunner& io, TaskRunner& runner,
                                 const Clock& clock, Random& random) {
  if (config.spool == "none") return nullptr;
  Spool::Options options;
  options.directory = config.spool;
  // The spool makes paths by appending to this; a trailing slash would make one directory two.
  while (options.directory.size() > 1 && options.directory.back() == '/') {
    options.directory.pop_back();
  }
  options.agent_id = info.agent_id;
  options.boot_id = info.boot_id;
  options.bytes_max = config.spool_bytes;
  options.capture_bytes_max = config.spool_capture_bytes;
  options.free_percent_min = config.spool_free_percent;
  options.when_full =
      config.spool_drops_oldest ? Spool::WhenFull::kDropOldest : Spool::WhenFull::kRefuseNewest;
  return std::make_unique<Spool>(options, files, io, runner, clock, random);
}

// Returns null if there is no spool, whose disk could be asked about.
std::unique_ptr<DiskRoom> MakeSpoolRoom(const AgentConfig& config, TaskRunner& io) {
  return config.spool == "none" ? nullptr : std::make_unique<DiskRoom>(config.spool, io);
}

// The path to suggest for LD_PRELOAD in messages about untapped workers: the library as it is
// installed beside this program (bin/ and lib/ under one prefix), or only its name where it is
// elsewhere and the dynamic linker has to find it.
std::string FindTapLibrary() {
  constexpr std::string_view kName = "libneurontrace_tap.so";
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto library = program.parent_path().parent_path() / "lib" / kName;
  return !error && std::filesystem::exists(library, error) ? library.string() : std::string(kName);
}

// Returns the scan for workers without a tap; null for --no-process-scan. `taps` outlives it.
std::unique_ptr<UntappedWorkers> MakeUntappedWorkers(const AgentConfig& config,
                                                     const AgentInfo& info, TaskRunner& runner,
                                                     const Clock& clock, SourceListener& listener,
                                                     const TappedWorkers& taps) {
  if (!config.scans_processes) return nullptr;
  return std::make_unique<UntappedWorkers>(
      UntappedWorkers::Options{.instance_id = info.instance_id,
                               .boot_id = info.boot_id,
                               .socket = config.socket,
                               .tap_library = FindTapLibrary(),
                               .with_arguments = config.command_arguments},
      runner, clock, listener, taps);
}

// A few stat(2) calls each time; an operator who changes the file does not wait longer than this.
constexpr uint64_t kConfigPollNs = 2'000'000'000;

// "0 1 (rank 33)": the logical cores of a worker, each with the rank by its best evidence, which is
// the first one.
std::string CoresOf(const WorkerInfo& worker) {
  std::string cores;
  for (const CoreInfo& core : worker.cores) {
    if (!cores.empty()) cores += ' ';
    cores += std::to_string(core.nc_idx);
    if (!core.rank_evidence.empty()) {
      cores += fmt::format(" (rank {})", core.rank_evidence.front().worker_gid);
    }
  }
  return cores;
}

// Returns the status page's table with a row for each worker that the agent reports.
StatusTable WorkersTable(const ControlSession& control, const TapSource::Headroom& headroom) {
  StatusTable table{"Workers", {"pid", "state", "cores", "ring holds", "runtime", "detail"}, {}};
  for (const auto& [identity, worker] : control.workers()) {
    std::string holds;
    for (const CoreInfo& core : worker.cores) {
      const auto it = headroom.rings.find(core.nc_idx);
      if (it == headroom.rings.end()) continue;
      holds += (holds.empty() ? "" : " ") + FormatSeconds(it->second);
    }
    table.rows.push_back({std::to_string(identity.pid), std::string(ToString(worker.state)),
                          CoresOf(worker), std::move(holds), worker.runtime_version,
                          worker.detail});
  }
  return table;
}

// Returns the table of the captures that this agent takes part in.
StatusTable CapturesTable(const ControlSession& control) {
  StatusTable table{"Captures", {"capture", "kind", "state", "workers recording"}, {}};
  for (const ControlSession::CaptureState& capture : control.CaptureStates()) {
    const char* const state =
        capture.finished ? "delivered" : (capture.stopping ? "stopping" : "running or armed");
    table.rows.push_back({capture.id.ToString(), std::string(ToString(capture.mode)), state,
                          std::to_string(capture.recording)});
  }
  return table;
}

// How long an HTTP request may wait for the sequence. It is answered with 503 and "retry" after
// that, as a caller such as a training script must not hang because the agent is busy.
constexpr std::chrono::milliseconds kPostPatience{5'000};

// Maps outcomes to HTTP codes that clients already know how to handle: 429 and 503 carry
// Retry-After in seconds, rounded up so that a retry is never early.
PostAnswer ToPostAnswer(const AgentTriggers::PostOutcome& outcome) {
  using Posted = AgentTriggers::Posted;
  switch (outcome.posted) {
    case Posted::kReported:
      // The rule's effect is the aggregator's decision, hence "accepted" and not "done".
      return {202, "reported to the aggregator; neurontrace triggers list shows the result\n"};
    case Posted::kNoRule:
      return {404, "no such rule\n"};
    case Posted::kNotPosted:
      return {404, "only rules with `when = \"post\"` accept a POST\n"};
    case Posted::kCoolsDown:
      return {429, "rate limited: the trigger is in its cool-down period\n",
              outcome.retry_ns / 1'000'000'000 + 1};
    case Posted::kUndelivered:
      return {503, "not connected to the aggregator\n", 10};
  }
  return {503, ""};
}

}  // namespace

// Builds, connects and owns everything of an agent that concerns pods. The kubelet is asked on a
// thread of its own because the call blocks. Constructed, used and destroyed on the agent's
// sequence.
// thread: pods: asks the kubelet, if --pod-resources names its socket
class AgentPods final : private PodWorkers {
 public:
  // Starts the first look once the sequence runs. `taps`, `runner` and `clock` outlive this; the
  // registry owns the metrics.
  AgentPods(const std::string& kubelet_socket, TapSource& taps, TaskRunner& runner,
            const Clock& clock, prometheus::Registry& registry, const std::string& instance_id)
      : taps_(taps),
        kubelet_(kubelet_socket),
        resolver_(kubelet_, ProcessReader(), counters_),
        attribution_(resolver_, io_, runner, clock, *this),
        thread_([this] { io_.Run(); }) {
    AddMetrics(registry, instance_id);
    attribution_.Start();
  }
  // Returns promptly: Cancel ends the call that is under way, so that join() never waits for the
  // kubelet.
  ~AgentPods() override {
    kubelet_.Cancel();
    io_.PostTask([this] { io_.Quit(); });
    thread_.join();
  }
  AgentPods(const AgentPods&) = delete;
  AgentPods& operator=(const AgentPods&) = delete;

 private:
  // PodWorkers
  std::vector<PodProcess> Processes() override {
    Publish();
    std::vector<PodProcess> processes;
    for (const WorkerIdentity& worker : taps_.SeenWorkers()) {
      processes.push_back({worker.pid, worker.start_time_ticks});
    }
    return processes;
  }
  void OnPodChange(const PodResolver::Change& change) override {
    taps_.SetPod(change.process.pid, change.process.start_time_ticks, change.pod);
  }

  // Registers a metric for each counter; Publish copies the values.
  void AddMetrics(prometheus::Registry& registry, const std::string& instance_id) {
    const struct {
      const char* name;
      const char* help;
      const std::atomic<uint64_t>& counter;
    } rows[] = {{"neurontrace_agent_pod_resources_asked_total",
                 "Queries to the kubelet for the devices of pods", counters_.asked},
                {"neurontrace_agent_pod_resources_failed_total",
                 "Queries to the kubelet without a usable answer", counters_.failed},
                {"neurontrace_agent_pod_resources_attributed_total",
                 "Workers whose pod was identified by their open devices", counters_.attributed},
                {"neurontrace_agent_pod_resources_ambiguous_total",
                 "Workers whose devices match several pods", counters_.ambiguous},
                {"neurontrace_agent_pod_resources_refused_total",
                 "Containers in answers with an invalid name or device", counters_.refused}};
    for (const auto& row : rows) {
      metrics_.push_back(
          {&MakeCounter(registry, row.name, row.help, {{"instance_id", instance_id}}),
           &row.counter});
    }
  }

  // Called with each look, every few seconds, rather than by AgentMetrics: the counters are atomics
  // because the kubelet's thread raises them.
  void Publish() {
    for (const auto& [metric, counter] : metrics_) {
      RaiseCounter(*metric, static_cast<double>(counter->load(std::memory_order_relaxed)));
    }
  }

  TapSource& taps_;
  PodCounters counters_;
  KubeletClient kubelet_;
  PodResolver resolver_;
  std::vector<std::pair<prometheus::Counter*, const std::atomic<uint64_t>*>> metrics_;
  EventLoop io_;
  PodAttribution attribution_;
  std::thread thread_;
};

Agent::Agent(const AgentConfig& config, const AgentInfo& info, const Process& process)
    : drain_ns_(uint64_t{config.drain_seconds} * 1'000'000'000),
      spool_adopts_(config.spool_adopts),
      process_({process.log, health_, registry_, turns_, clock_}, ProcessOptions(config, info),
               MakeReloadHooks(process)),
      spool_(MakeSpool(config, info, FilesOf(config, files_, unsynced_files_), io_loop_, loop_,
                       clock_, random_)),
      queue_(spool_.get()),
      // Control and upload have a connection each, so that reports never wait behind chunks: with
      // one HTTP/2 connection, flow control would let full chunk windows delay the control
      // messages.
      uploader_(queue_,
                MakeGrpcUploadConnector(MakeChannel(config.aggregator, config.security),
                                        info.agent_id, loop_),
                loop_, clock_, random_),
      control_(info,
               MakeGrpcControlConnector(MakeChannel(config.aggregator, config.security), loop_),
               clock_, loop_, random_, *this),
      triggers_(info.instance_id, clock_, loop_, control_),
      taps_(TapOptions(config, info), loop_, clock_, queue_, control_,
            MakeRankResolver(config.ranks), source_metrics_),
      untapped_(MakeUntappedWorkers(config, info, loop_, clock_, control_, taps_)),
      kineto_(config.framework_directory, ProcFiles(), clock_, source_metrics_),
      xla_(XlaRecorder::Create(config.framework_directory, loop_, clock_, source_metrics_)),
      framework_({.agent_id = info.agent_id,
                  .instance_id = info.instance_id,
                  .boot_id = info.boot_id,
                  .files = config.framework_files,
                  .directory = config.framework_directory},
                 clock_, loop_, queue_, control_, source_metrics_, control_),
      host_({.agent_id = info.agent_id,
             .instance_id = info.instance_id,
             .boot_id = info.boot_id,
             .enabled = config.samples_host},
            clock_, loop_, queue_, source_metrics_, control_),
      annotations_(
          {.agent_id = info.agent_id, .instance_id = info.instance_id, .boot_id = info.boot_id},
          clock_, loop_, queue_, source_metrics_, control_),
      artifact_uploader_(MakeChannel(config.aggregator, config.security), info.agent_id, loop_),
      artifacts_({.directories = config.inspect_directories, .instance_id = info.instance_id},
                 clock_, loop_, artifact_uploader_, source_metrics_, control_, ProcessStartNs),
      clocks_(config, info),
      metrics_(*registry_, info.instance_id,
               {source_metrics_, queue_, uploader_, control_, taps_, spool_.get(), clock_,
                answer_watch_, clocks_, triggers_}),
      spool_room_(MakeSpoolRoom(config, io_loop_)),
      delivery_metrics_(*registry_, metrics_.labels(),
                        {source_metrics_, queue_, uploader_, spool_room_.get()}, config.security),
      pods_(config.pod_resources.empty()
                ? nullptr
                : std::make_unique<AgentPods>(config.pod_resources, taps_, loop_, clock_,
                                              *registry_, info.instance_id)),
      stacks_(config.stacks_program, control_, artifact_uploader_, loop_, clock_, *registry_,
              info.instance_id) {
  // Sources are added before the control session starts, which is in OpenSpool.
  DeclareConditions();
  taps_.SetWatch(triggers_);
  taps_.SetAnnotations(annotations_);
  control_.AddSource(taps_);
  if (untapped_ != nullptr) control_.AddSource(*untapped_);
  if (xla_ != nullptr) framework_.AddRecorder(*xla_);
  control_.AddSource(framework_);
  control_.AddSource(host_);
  control_.AddSource(annotations_);
  control_.AddSource(artifacts_);
}

void Agent::DeclareConditions() {
  process_.DeclareCertificates();
  health_.Declare(kAggregatorCondition, HealthState::Severity::kReadiness, "not connected yet");
  health_.Declare(kSocketCondition, HealthState::Severity::kReadiness, "not listening yet");
  health_.Declare(kDataFlowCondition, HealthState::Severity::kReadiness, "not checked yet");
  health_.Declare(kUploadCondition, HealthState::Severity::kReadiness, "not checked yet");
  health_.Watch(kSequenceCondition, HealthState::Severity::kLiveness,
                [this] { return turns_.DescribeStuck(); });
  if (spool_ != nullptr) {
    health_.Declare(kSpoolCondition, HealthState::Severity::kReadiness, "not read yet");
  }
}

Agent::~Agent() {
  // First: a request that arrives later would read components that are already destroyed.
  process_.StopPages();
  if (!io_thread_.joinable()) return;
  io_loop_.PostTask([this] { io_loop_.Quit(); });
  io_thread_.join();
}

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(const AgentConfig& config,
                                                     const AgentInfo& info,
                                                     const Process& process) {
  RETURN_IF_ERROR(CheckAgentConfig(config));
  std::unique_ptr<Agent> agent(new Agent(config, info, process));
  RETURN_IF_ERROR(agent->Start(config));
  agent->process_.AddStatusPage(agent->loop_,
                                [agent = agent.get(), info] { return agent->StatusTables(info); });
  return agent;
}

absl::Status Agent::Start(const AgentConfig& config) {
  // First what others post to; the pages last: a probe that succeeds means that taps can connect.
  if (spool_ != nullptr) io_thread_ = std::thread([this] { io_loop_.Run(); });
  RETURN_IF_ERROR(taps_.Start());
  RETURN_IF_ERROR(ListenToKineto(config));
  health_.Set(kSocketCondition, true);
  RETURN_IF_ERROR(process_.StartPages(config.health_address, config.health_names));
  process_.pages().AddPostPage(MakeTriggerPage(config));
  return absl::OkStatus();
}

absl::Status Agent::ListenToKineto(const AgentConfig& config) {
  if (config.kineto_directory.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int group, FindKinetoGroup(config.kineto_group));
  ASSIGN_OR_RETURN(kineto_socket_,
                   KinetoSocket::Listen({.directory = config.kineto_directory, .group = group},
                                        loop_, kineto_, source_metrics_));
  framework_.AddRecorder(kineto_);
  return absl::OkStatus();
}

void Agent::Run(int signal_fd) {
  loop_.AddReadableWatch(signal_fd, [this, signal_fd] { OnSignal(signal_fd); });
  // As a task, since components require that they are called on the sequence.
  loop_.PostTask([this] {
    OpenSpool();
    PublishMetrics();
    PollConfig();
  });
  loop_.Run();
  turns_.Rest();
  loop_.RemoveReadableWatch(signal_fd);
}

void Agent::OpenSpool() {
  // A signal may arrive while the spool is being waited for.
  if (ending_) return;
  turns_.Rest();  // which reads all of it
  const absl::Status status = queue_.Recover();
  // Recover fails only with a spool, so spool_ is set here. An unreadable directory that may hold
  // chunks is waited for: starting without it would repeat sequence numbers.
  if (!status.ok() && spool_->CanHoldChunks()) {
    if (std::exchange(spool_problem_, status.ToString()) != spool_problem_) {
      spdlog::error("waiting for the spool: {}", spool_problem_);
    }
    health_.Set(kSpoolCondition, false, spool_problem_);
    loop_.PostDelayedTask([this] { OpenSpool(); }, kSpoolRetryNs);
    return;
  }
  if (!status.ok()) {
    spdlog::error("the spool is unusable; chunks stay in memory until this agent restarts: {}",
                  status.ToString());
  } else if (spool_ != nullptr) {
    spdlog::info("spool: {} chunks in {} captures, {} bytes", queue_.chunks(), spool_->captures(),
                 spool_->bytes());
  }
  started_ = true;
  // Not earlier: what the spool holds is added to the cursors of every welcome (AddSpoolCursors).
  control_.Start();
  // Captures are resumed without the aggregator only if it does not answer for a while.
  loop_.PostDelayedTask([this] { ResumeOffline(); }, ControlSession::kResumeOfflineAfterNs);
}

void Agent::ResumeOffline() {
  // The aggregator's own list is better than the spool's, and a stopping agent starts nothing.
  if (welcomed_ || ending_) return;
  for (DeliveryQueue::Resumed& capture : queue_.HandleRunning()) {
    control_.Resume(
        {capture.capture_id, std::move(capture.spec), false, std::move(capture.cursors)});
  }
}

// --- Calls and questions of the control session --------------------------------------------------

void Agent::OnWelcome(const std::set<CaptureId>& captures) {
  health_.Set(kAggregatorCondition, true);
  welcomed_ = true;
  // Before uploads are enabled, so that chunks of ended captures are not sent.
  uploader_.ForgetAllBut(captures);
  uploader_.SetEnabled(true);
}

void Agent::OnConnectionLost() {
  health_.Set(kAggregatorCondition, false, "the connection is lost");
  uploader_.SetEnabled(false);
}

absl::Status Agent::CheckAggregator(const std::string& aggregator_id) {
  absl::Status status = ClaimSpool(aggregator_id);
  if (!status.ok()) health_.Set(kAggregatorCondition, false, std::string(status.message()));
  return status;
}

bool Agent::WasWronglyResumed(const CaptureResume& resume) {
  return queue_.WasWrong(resume.capture_id, resume.cursors);
}

void Agent::OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  queue_.RecordRunning(capture_id, spec);
}

void Agent::OnRecordingChanged() { host_.PollAgain(); }

// An export right after the end of the capture needs the clock evidence up to that end.
void Agent::OnCaptureStopping() { clocks_.Flush(); }

void Agent::OnCaptureOver(const CaptureId& capture_id) {
  uploader_.ForgetCapture(capture_id);
  clocks_.Flush();
}

void Agent::AddSpoolCursors(CaptureResume& resume) {
  // First what the aggregator has stored is settled; what is left here is then added to the
  // cursors.
  uploader_.HandleCursors(resume.capture_id, resume.cursors);
  queue_.MergeCursors(resume.capture_id, resume.cursors);
}

bool Agent::IsDelivered(const CaptureId& capture_id) const { return !queue_.Holds(capture_id); }

void Agent::OnTriggers(const std::vector<TriggerRule>& rules, uint64_t /*version*/) {
  triggers_.SetRules(rules);
}

void Agent::OnCollectStacks(const StacksOrder& order) { stacks_.Collect(order); }

absl::Status Agent::ClaimSpool(const std::string& aggregator_id) {
  if (spool_ == nullptr || aggregator_id.empty()) return absl::OkStatus();
  // An empty spool may change its owner: nothing in it can be lost.
  const std::string known = spool_->aggregator_id();
  if (known == aggregator_id) return absl::OkStatus();
  if (!known.empty() && queue_.chunks() > 0) {
    if (!spool_adopts_) {
      return FailedPrecondition(
          "connected to aggregator {}, but {} chunks in the spool belong to aggregator {}, which "
          "has a different store: nothing is sent or removed. Connect the agent to that "
          "aggregator, move the spool's directory away, or start it with --spool-adopt to discard "
          "the chunks that {} does not recognise",
          aggregator_id, queue_.chunks(), known, aggregator_id);
    }
    spdlog::warn("spool: changed from aggregator {} to {} because of --spool-adopt", known,
                 aggregator_id);
  }
  spool_->RecordAggregator(aggregator_id);
  return absl::OkStatus();
}

// --- Shutting down, and the conditions -----------------------------------------------------------

void Agent::OnSignal(int signal_fd) {
  signalfd_siginfo signal{};
  if (read(signal_fd, &signal, sizeof(signal)) != sizeof(signal)) return;
  if (signal.ssi_signo == SIGHUP) return process_.ReloadChangedFiles(true);
  if (std::exchange(ending_, true)) {
    spdlog::warn("signal {} again: exiting immediately", signal.ssi_signo);
    loop_.Quit();
    return;
  }
  spdlog::info("signal {}: shutting down, {} chunks wait for the aggregator", signal.ssi_signo,
               queue_.chunks());
  health_.Set(kSocketCondition, false, "shutting down");
  clocks_.Flush();
  // Clock evidence has a deadline of its own, shorter than that of chunks.
  clocks_deadline_ns_ = clock_.MonotonicNs() + kLastEvidenceNs;
  // From here on sources find no room and read no further, so that the queue can only shrink.
  queue_.Close();
  taps_.Flush();
  framework_.Flush();
  host_.Flush();
  annotations_.Flush();
  Drain(clock_.MonotonicNs() + drain_ns_);
}

void Agent::Drain(uint64_t deadline_ns) {
  const bool drained = queue_.chunks() == 0;
  // Without an aggregator there is nobody to wait for but the disk.
  const bool keeps = spool_ != nullptr && spool_->health().ok() && queue_.unspooled_chunks() > 0;
  // Chunks that are on the disk already are safe, so a node whose aggregator is gone stops at once
  // instead of using up the whole drain time.
  const bool wait = !drained && (uploader_.connected() || keeps);
  const uint64_t now_ns = clock_.MonotonicNs();
  const bool clocks_wait = !clocks_.settled() && now_ns < clocks_deadline_ns_;
  if ((wait || clocks_wait) && now_ns < deadline_ns) {
    loop_.PostDelayedTask([this, deadline_ns] { Drain(deadline_ns); }, kDrainPollNs);
    return;
  }
  spdlog::info("stopped, {} chunks are not acknowledged, {} of them are in the spool",
               queue_.chunks(), queue_.chunks() - queue_.unspooled_chunks());
  // The order matters: no new order may arrive, then nothing is sent, then the last cursors
  // describe what was sent.
  control_.Stop();
  uploader_.SetEnabled(false);
  if (spool_ == nullptr) return loop_.Quit();
  spool_->Finish([this] { loop_.Quit(); });
  // Whichever comes first ends the loop.
  loop_.PostDelayedTask([this] { loop_.Quit(); }, kLastCursorsNs);
}

void Agent::PollUpload() {
  answer_watch_.Poll(clock_.MonotonicNs(), uploader_.counters().answers, queue_.chunks());
  const uint64_t waited_ns = answer_watch_.waited_ns();
  if (waited_ns < kAnswerWaitMaxNs) return health_.Set(kUploadCondition, true);
  health_.Set(kUploadCondition, false,
              fmt::format("{} chunks wait and the aggregator has acknowledged none for {} s: it is "
                          "slow, overloaded or unreachable",
                          queue_.chunks(), waited_ns / 1'000'000'000));
}

void Agent::PublishMetrics() {
  // Proves to the watchdog that the sequence is not stuck.
  turns_.Turn();
  PollUpload();
  metrics_.Publish();
  process_.Publish();
  delivery_metrics_.Publish();
  // Canaries travel the whole way of the events, so this condition sees a stall at any stage.
  const auto stall = DescribeStall(source_metrics_.canary_watch, clock_.MonotonicNs());
  health_.Set(kDataFlowCondition, !stall, stall.value_or(""));
  // Before that, OpenSpool sets the condition.
  if (started_ && spool_ != nullptr) {
    health_.Set(kSpoolCondition, spool_->health().ok(), spool_->health().ToString());
  }
  loop_.PostDelayedTask([this] { PublishMetrics(); }, kPublishNs);
}

// --- Pages, and the configuration that changes while it runs -------------------------------------

DaemonProcess::Options Agent::ProcessOptions(const AgentConfig& config, const AgentInfo& info) {
  return {.program = "neurontrace-agent",
          .metrics = {.log_lines_left_out = "neurontrace_agent_log_lines_left_out_total",
                      .config_taken = "neurontrace_agent_config_reloads_total",
                      .config_refused = "neurontrace_agent_config_refused_total",
                      .config_good = "neurontrace_agent_config_valid",
                      .options_after_restart = "neurontrace_agent_options_after_restart",
                      .ready_condition = "neurontrace_agent_ready_condition",
                      .sequence_age = "neurontrace_agent_sequence_age_seconds"},
          .labels = {{"instance_id", info.instance_id}},
          .config_file = config.config_file,
          .options = config.options,
          .at_once = AgentOptionsAtOnce(),
          .security = config.security,
          .address = config.aggregator,
          .side = ChannelSide::kClient};
}

ConfigReload::Hooks Agent::MakeReloadHooks(const Process& process) {
  return neurontrace::MakeReloadHooks<AgentConfig>(
      process.log, process.read_config, [this](const AgentConfig& config) {
        drain_ns_ = uint64_t{config.drain_seconds} * 1'000'000'000;
      });
}

void Agent::PollConfig() {
  process_.ReloadChangedFiles(false);
  loop_.PostDelayedTask([this] { PollConfig(); }, kConfigPollNs);
}

std::vector<StatusTable> Agent::StatusTables(const AgentInfo& info) {
  const auto seconds = [](uint64_t ns) { return fmt::format("{} s", ns / 1'000'000'000); };
  std::vector<StatusTable> tables;
  tables.push_back(
      {"This agent",
       {},
       {{"instance", fmt::format("{} ({})", info.instance_id, info.instance_id_source)},
        {"agent", info.agent_id},
        {"boot", info.boot_id},
        {"running for", seconds(clock_.MonotonicNs() - began_monotonic_ns_)}}});
  tables.push_back(WorkersTable(control_, taps_.headroom()));
  tables.push_back(CapturesTable(control_));
  StatusTable delivery{"Delivery",
                       {},
                       {{"chunks waiting", std::to_string(queue_.chunks())},
                        {"chunks not yet on disk", std::to_string(queue_.unspooled_chunks())},
                        {"upload", uploader_.connected() ? "connected" : "not connected"}}};
  if (spool_ != nullptr) {
    delivery.rows.push_back(
        {"spool", fmt::format("{} of {} bytes, for aggregator {}", spool_->bytes(),
                              spool_->bytes_max(), spool_->aggregator_id())});
  }
  tables.push_back(std::move(delivery));
  return tables;
}

// --- Triggers by POST ----------------------------------------------------------------------------

PostPage Agent::MakeTriggerPage(const AgentConfig& config) {
  return {.prefix = "/triggers/",
          .body_bytes_max = limits::kTriggerBodyBytesMax,
          .is_for_anybody = config.trigger_posts != TriggerPosts::kThisMachine,
          .handler = this};
}

PostAnswer Agent::TakePost(const PostRequest& request) {
  // triggers_ belongs to the sequence.
  const auto outcome = PostAndWait(loop_, "the agent", kPostPatience, [this, &request] {
    return triggers_.Post(request.name, request.body);
  });
  if (outcome.ok()) return ToPostAnswer(*outcome);
  return {503, std::string(outcome.status().message()) + "\n", 1};
}

}  // namespace neurontrace
