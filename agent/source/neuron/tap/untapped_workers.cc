// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/untapped_workers.h"

#include <fmt/format.h>
#include <sys/un.h>

#include "agent/source/neuron/tap/worker_facts.h"
#include "lib/base/clean_text.h"
#include "lib/base/small_file.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/limits.h"
#include "lib/trace/tap_limits.h"

namespace neurontrace {
namespace {

// The names that the tap itself uses: its variable, its default path and its file.
constexpr std::string_view kSocketVariable = "NEURONTRACE_AGENT_SOCKET";
constexpr std::string_view kDefaultSocket = "/run/neurontrace/agent.sock";
constexpr std::string_view kPreloadVariable = "LD_PRELOAD";
constexpr std::string_view kTapName = "libneurontrace_tap.so";
constexpr size_t kShownVariableBytesMax = 256;  // of a value that a process set
constexpr size_t kPreloadAncestorsMax = 8;      // whose environments are read

// Returns whether a description of a worker needs this variable.
bool IsWanted(std::string_view name) {
  return IsJobVariable(name) || name == kSocketVariable || name == kPreloadVariable;
}

// Returns the value of the variable; empty if it is not set.
std::string_view VariableOf(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

// Returns a value that a process set in a form for people: printable and cut.
std::string Shown(std::string_view value) { return CleanText(value, kShownVariableBytesMax); }

// Returns whether a socket in the network namespace of process `who` is bound to `path`, by the
// kernel's table. stat(2) on the path is avoided: a job chose it, and it may be on a file system of
// the job's user that blocks.
bool IsBound(const std::string& proc_root, std::string_view who, std::string_view path) {
  const auto table =
      ReadSmallFile(fmt::format("{}/{}/net/unix", proc_root, who), limits::kSocketTableBytesMax);
  return table.ok() && table->find(fmt::format(" {}\n", path)) != std::string::npos;
}

}  // namespace

UntappedWorkers::UntappedWorkers(Options options, TaskRunner& runner, const Clock& clock,
                                 SourceListener& listener, const TappedWorkers& tapped)
    : options_(std::move(options)),
      boot_id_(options_.boot_id.empty() ? ProcFiles(options_.proc_root).BootId()
                                        : options_.boot_id),
      proc_(options_.proc_root),
      runner_(runner),
      clock_(clock),
      listener_(listener),
      tapped_(tapped),
      started_ns_(clock.MonotonicNs()),
      processes_(options_.proc_root) {
  After(kFirstRoundNs);
}

void UntappedWorkers::After(uint64_t delay_ns) {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Poll(); }), delay_ns);
}

// A round is split into steps, so that the sequence is free in between.
void UntappedWorkers::Poll() {
  const bool over = processes_.Poll(clock_.MonotonicNs());
  if (over) AddRound();
  After(over ? kRoundNs : kPollNs);
}

bool UntappedWorkers::IsListed(const RuntimeProcesses::Process& process) const {
  if (!process.has_tap) return true;
  // A process whose tap was connected once has called nrt_init, whatever happened to the tap since.
  if (had_tap_.contains({process.pid, process.start_time_ticks})) return false;
  // A tap may come back, and a process that has only just begun is about to call nrt_init.
  const bool had_time =
      process.rounds > 1 && clock_.MonotonicNs() - started_ns_ >= kReturnPatienceNs;
  return had_time || UsesOtherSocket(process.pid);
}

// Not decided for containers, where this agent's socket may have another path.
bool UntappedWorkers::UsesOtherSocket(uint32_t pid) const {
  const ProcessDescription words = ReadProcessDescription(
      options_.proc_root, pid, [](std::string_view name) { return name == kSocketVariable; });
  if (!words.has_environment || !proc_.ContainerId(pid).empty()) return false;
  const std::string_view given = VariableOf(words.environment, kSocketVariable);
  return (given.empty() ? kDefaultSocket : given) != options_.socket;
}

void UntappedWorkers::AddRound() {
  // First: which processes there are, and whose tap has connected.
  const std::vector<RuntimeProcesses::Process> found =
      processes_.Find([this](uint32_t pid, uint64_t start) {
        const bool here = tapped_.HasWorker(pid, start);
        if (here) had_tap_.insert({pid, start});
        return here;
      });
  // Second: each is described once, and again when its tap was loaded meanwhile.
  std::map<ProcessKey, Listed> before = std::exchange(workers_, {});
  for (const RuntimeProcesses::Process& process : found) {
    if (!IsListed(process) || workers_.size() >= limits::kWorkersPerAgentMax) continue;
    const ProcessKey key{process.pid, process.start_time_ticks};
    const auto known = before.find(key);
    // has_tap is compared too, because it can change for the same process.
    const bool same =
        known != before.end() && known->second.info && known->second.has_tap == process.has_tap;
    Listed& listed = workers_[key];
    listed = same ? std::move(known->second) : Listed{Describe(process), process.has_tap};
    const std::optional<WorkerInfo>& worker = listed.info;
    if (known != before.end()) before.erase(known);
    // Reported once; a change of has_tap makes a new report.
    if (same || !worker) continue;
    listener_.OnWorker(*worker);
    for (const auto& [id, spec] : captures_) Refuse(id, spec, *worker);
  }
  // Third: what is left of the last round is gone, or has a tap now.
  for (const auto& [key, listed] : before) {
    // The tap of one that has connected speaks for it under the same identity.
    if (listed.info && !tapped_.HasWorker(key.first, key.second)) {
      listener_.OnWorkerGone(listed.info->identity);
    }
  }
  // Otherwise the set would grow with every process of the node.
  std::erase_if(had_tap_,
                [this](const ProcessKey& key) { return !proc_.Lives(key.first, key.second); });
}

// Returns whether the process looks for an agent on another socket, and there is one.
bool UntappedWorkers::IsAnotherAgents(const RuntimeProcesses::Process& process,
                                      std::string_view socket) const {
  if (socket.empty() && !process.has_tap) return false;
  const std::string_view path = socket.empty() ? kDefaultSocket : socket;
  return path != options_.socket &&
         (IsBound(options_.proc_root, "self", path) ||
          IsBound(options_.proc_root, std::to_string(process.pid), path));
}

// The identity is the one that its tap would get, so that a worker which connects later is the same
// one.
std::optional<WorkerInfo> UntappedWorkers::Describe(
    const RuntimeProcesses::Process& process) const {
  const ProcessDescription words =
      ReadProcessDescription(options_.proc_root, process.pid, IsWanted);
  if (IsAnotherAgents(process, VariableOf(words.environment, kSocketVariable))) return std::nullopt;
  WorkerInfo info;
  info.identity = {.instance_id = options_.instance_id,
                   .boot_id = boot_id_,
                   .pid = process.pid,
                   .start_time_ticks = process.start_time_ticks,
                   .container_id = proc_.ContainerId(process.pid)};
  info.command = ReportedCommand(words.command, options_.with_arguments);
  info.job = FindJob(words.environment);
  info.job_facts = FindJobFacts(words.environment);
  WarnOfCutNames(words.environment, 0, info.warnings);
  if (process.has_tap) {
    ExplainTap(words, info);
  } else {
    info.state = WorkerState::kNoTap;
    info.detail = ExplainNoTap(words, process.pid);
  }
  return info;
}

// In order of certainty: a path that cannot work, a path where this agent is not, and otherwise the
// reasons that remain.
void UntappedWorkers::ExplainTap(const ProcessDescription& words, WorkerInfo& info) const {
  const std::string_view given = VariableOf(words.environment, kSocketVariable);
  const std::string_view socket = given.empty() ? kDefaultSocket : given;
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) {
    info.state = WorkerState::kNoTap;
    info.detail = fmt::format(
        "its tap cannot connect: NEURONTRACE_AGENT_SOCKET has {} bytes, but a socket path has at "
        "most {}; start it with NEURONTRACE_AGENT_SOCKET={}",
        socket.size(), sizeof(sockaddr_un::sun_path) - 1, options_.socket);
  } else if (words.has_environment && socket != options_.socket) {
    info.state = WorkerState::kNoTap;
    info.detail = fmt::format(
        "its tap looks for an agent at {} ({}), where none listens; start it with "
        "NEURONTRACE_AGENT_SOCKET={}",
        Shown(socket),
        given.empty() ? "the default, as NEURONTRACE_AGENT_SOCKET is not set"
                      : "its NEURONTRACE_AGENT_SOCKET",
        options_.socket);
  } else {
    info.state = WorkerState::kNotInitialised;
    info.detail = fmt::format(
        "its tap is loaded but has not connected to {}: nrt_init has not been called, or bypasses "
        "the tap{}, or this process may not connect (see docs/user/tap.md)",
        options_.socket,
        info.identity.container_id.empty() ? ""
                                           : ", or the socket is not mounted in its container");
  }
}

// In order of certainty, by what LD_PRELOAD of the process and of its ancestors shows.
std::string UntappedWorkers::ExplainNoTap(const ProcessDescription& words, uint32_t pid) const {
  const std::string_view preload = VariableOf(words.environment, kPreloadVariable);
  if (preload.find(kTapName) != std::string_view::npos) {
    return fmt::format(
        "LD_PRELOAD names the tap, but it is not loaded; check that the file exists and is "
        "readable for this process, also in its container. LD_PRELOAD={}",
        Shown(preload));
  }
  std::string before;
  const uint32_t ancestor = AncestorWithTap(pid, before);
  if (ancestor != 0 && !preload.empty()) {
    return fmt::format(
        "the tap is not loaded: its parent process {} had LD_PRELOAD={}, which was replaced by "
        "LD_PRELOAD={}; append to the variable instead of setting it "
        "(LD_PRELOAD=\"LIBRARY:$LD_PRELOAD\")",
        ancestor, Shown(before), Shown(preload));
  }
  if (ancestor != 0) {
    return fmt::format(
        "the tap is not loaded: its parent process {} had LD_PRELOAD={}, but the variable was "
        "dropped (sudo, env -i, ssh and some launchers do that); pass it on",
        ancestor, Shown(before));
  }
  if (!preload.empty()) {
    return fmt::format(
        "it uses the Neuron Runtime without the tap, as its LD_PRELOAD={} does not include it; "
        "start it with LD_PRELOAD={}:{}",
        Shown(preload), options_.tap_library, Shown(preload));
  }
  return fmt::format(
      "it uses the Neuron Runtime without the tap; start it with LD_PRELOAD={} in its environment",
      options_.tap_library);
}

// Sets `preload` to that ancestor's value. Reads the environments of a few ancestors only.
uint32_t UntappedWorkers::AncestorWithTap(uint32_t pid, std::string& preload) const {
  const auto is_preload = [](std::string_view name) { return name == kPreloadVariable; };
  std::vector<uint32_t> ancestors = processes_.AncestorsOf(pid);
  if (ancestors.size() > kPreloadAncestorsMax) ancestors.resize(kPreloadAncestorsMax);
  for (const uint32_t ancestor : ancestors) {
    const ProcessDescription words =
        ReadProcessDescription(options_.proc_root, ancestor, is_preload);
    const std::string_view value = VariableOf(words.environment, kPreloadVariable);
    if (value.find(kTapName) == std::string_view::npos) continue;
    preload = value;
    return ancestor;
  }
  return 0;
}

void UntappedWorkers::ApplyOrder(const SourceOrder& order) {
  using Kind = SourceOrder::Kind;
  const bool is_new_here =
      order.kind == Kind::kStart || order.kind == Kind::kArm || order.kind == Kind::kJoin;
  // A capture that is known has its workers refused already.
  if (!is_new_here || !captures_.emplace(order.capture_id, order.spec).second) return;
  for (const auto& [key, listed] : workers_) {
    if (listed.info) Refuse(order.capture_id, order.spec, *listed.info);
  }
}

void UntappedWorkers::Refuse(const CaptureId& capture_id, const CaptureSpec& spec,
                             const WorkerInfo& worker) {
  if (!Selects(spec, worker) ||
      tapped_.HasWorker(worker.identity.pid, worker.identity.start_time_ticks)) {
    return;
  }
  const bool no_tap = worker.state == WorkerState::kNoTap;
  CaptureWorkerStatus status;
  status.capture_id = capture_id;
  status.worker = worker.identity;
  status.state = CaptureWorkerState::kRefused;
  status.obstacle = no_tap ? CaptureObstacle::kNoTap : CaptureObstacle::kNotInitialised;
  status.detail = worker.detail;
  listener_.OnCaptureWorker(status);
}

}  // namespace neurontrace
