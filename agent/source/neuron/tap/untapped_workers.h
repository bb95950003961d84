// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/neuron/tap/runtime_processes.h"
#include "agent/source/neuron/tap/tapped_workers.h"
#include "agent/source/source.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The workers of this node that have no connected tap, as a source that records nothing: processes
// that use the runtime without a tap, and those whose tap has not connected. Each is in the
// inventory with an explanation of what to do, and in a capture that selects it, refused. Scans
// every few seconds. Lives on the agent's sequence.
class UntappedWorkers final : public Source {
 public:
  static constexpr uint64_t kFirstRoundNs = 1'000'000'000;
  static constexpr uint64_t kRoundNs = 5'000'000'000;
  // Time between the steps of one round.
  static constexpr uint64_t kPollNs = 20'000'000;
  // Taps that lost their agent reconnect within this time.
  static constexpr uint64_t kReturnPatienceNs = 12'000'000'000;

  struct Options {
    std::string instance_id;
    // Empty: the kernel's.
    std::string boot_id;
    // The path of this agent's socket. A worker that looks for another agent's is not its own.
    std::string socket;
    // The path of the tap, for texts that say how to load it.
    std::string tap_library;
    std::string proc_root = "/proc";
    // Whether whole command lines are reported, and not only their first word.
    bool with_arguments = false;
  };
  // All arguments but the options outlive this.
  UntappedWorkers(Options options, TaskRunner& runner, const Clock& clock, SourceListener& listener,
                  const TappedWorkers& tapped);

  // Returns the number of processes that the last round listed, including those of other agents.
  size_t size() const { return workers_.size(); }

  // Source
  // Refuses the workers in what starts or is armed; other orders begin nothing new.
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t) override { captures_.erase(capture_id); }
  bool IsFinished(const CaptureId&) const override { return true; }
  void Forget(const CaptureId& capture_id) override { captures_.erase(capture_id); }
  void Flush() override {}

 private:
  using ProcessKey = std::pair<uint32_t, uint64_t>;  // pid, start time

  // Runs Look after the delay.
  void After(uint64_t delay_ns);
  // One step of a round.
  void Poll();
  // Compares what a round found with what was reported, and reports the changes.
  void AddRound();
  // Returns whether the process is to be reported: it has no tap, or its tap has had time to
  // connect.
  bool IsListed(const RuntimeProcesses::Process& process) const;
  // Returns whether its tap looks for another socket than this agent's, so that it need not be
  // waited for.
  bool UsesOtherSocket(uint32_t pid) const;
  // Returns whether another agent is responsible for the process.
  bool IsAnotherAgents(const RuntimeProcesses::Process& process, std::string_view socket) const;
  // Returns the report about a process; nothing if it is another agent's.
  std::optional<WorkerInfo> Describe(const RuntimeProcesses::Process& process) const;
  // Explain why the tap of this process has not connected, or is not loaded: the values that were
  // found, and what to do.
  void ExplainTap(const ProcessDescription& words, WorkerInfo& info) const;
  std::string ExplainNoTap(const ProcessDescription& words, uint32_t pid) const;
  // Returns the nearest of its ancestors whose LD_PRELOAD names the tap; 0 if there is none.
  uint32_t AncestorWithTap(uint32_t pid, std::string& preload) const;
  // Reports the worker as refused in a capture that selects it.
  void Refuse(const CaptureId& capture_id, const CaptureSpec& spec, const WorkerInfo& worker);

  const Options options_;
  const std::string boot_id_;
  const ProcFiles proc_;
  TaskRunner& runner_;
  const Clock& clock_;
  SourceListener& listener_;
  const TappedWorkers& tapped_;
  // When this agent started, monotonic.
  const uint64_t started_ns_;

  // Finds the processes, in rounds of short steps.
  RuntimeProcesses processes_;
  struct Listed {
    // What was reported of it; nothing if another agent is responsible for it.
    std::optional<WorkerInfo> info;
    // Whether the tap was loaded when it was described.
    bool has_tap = false;
  };
  // The result of the last round.
  std::map<ProcessKey, Listed> workers_;
  // Living processes whose tap has been connected to this agent at least once.
  std::set<ProcessKey> had_tap_;
  // Captures that run or are armed, in which new workers are refused.
  std::map<CaptureId, CaptureSpec> captures_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
