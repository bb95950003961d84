// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_workers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/absent_workers.h"
#include "cli/process_tree.h"
#include "lib/base/clean_text.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace::cli {
namespace {

// A process may have more variables; those after this size are not found.
constexpr size_t kEnvironmentBytesMax = 2u << 20;
constexpr size_t kShownMax = 16;                // of each kind
constexpr size_t kShownVariableBytesMax = 256;  // of a variable's value
// The tap's default if NEURONTRACE_AGENT_SOCKET is not set.
constexpr char kDefaultSocket[] = "/run/neurontrace/agent.sock";

// Returns a variable of a process as it was when the process started; "" if it is not set. Later
// changes are not visible in /proc.
std::string VariableOf(const std::string& environment, const std::string& name) {
  const std::string wanted = name + "=";
  for (size_t from = 0; from < environment.size();) {
    const size_t end = std::min(environment.find('\0', from), environment.size());
    if (environment.compare(from, wanted.size(), wanted) == 0) {
      return environment.substr(from + wanted.size(), end - from - wanted.size());
    }
    from = end + 1;
  }
  return "";
}

// Returns the numbers as "7, 8, …", at most kShownMax of them.
std::string SomeOf(const std::vector<uint32_t>& pids) {
  std::string text;
  for (size_t i = 0; i < std::min(pids.size(), kShownMax); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pids[i]);
  }
  return pids.size() > kShownMax ? text + ", …" : text;
}

// Returns how findings name a process.
std::string NameOf(const ProcessSeen& process) {
  return fmt::format("pid {} ({})", process.pid, process.name);
}

// Collects workers with the same problem. The first few have a finding each, the others share one,
// so that hundreds of workers do not fill the screen.
class Problem {
 public:
  Problem(Severity severity, const char* others) : severity_(severity), others_(others) {}

  // Adds a worker with its own text. The shared finding repeats the last fix.
  void Add(uint32_t pid, std::string what, const std::string& fix) {
    if (shown_.size() < kShownMax) {
      shown_.push_back({"worker", severity_, std::move(what), fix});
    } else {
      more_.push_back(pid);
    }
  }
  // Appends the findings; this object is empty afterwards.
  void MoveTo(std::vector<Finding>& findings) {
    if (!more_.empty()) {
      shown_.push_back(
          {"worker", severity_,
           fmt::format("{} more workers {}: pid {}", more_.size(), others_, SomeOf(more_)),
           shown_.back().fix});
    }
    for (Finding& finding : shown_) findings.push_back(std::move(finding));
  }

 private:
  const Severity severity_;
  const char* const others_;
  std::vector<Finding> shown_;
  std::vector<uint32_t> more_;
};

// Collects the workers of this machine by their state. The references must outlive it.
class WorkersSeen {
 public:
  WorkersSeen(HostView& host, const std::string& proc, const std::string& agent_socket,
              const LocalAgent& agent)
      : host_(host), proc_(proc), agent_socket_(agent_socket), agent_(agent) {}

  // Examines a process that has the runtime mapped. A worker can have two problems.
  void Examine(const ProcessSeen& process) {
    ++runtimes_[process.runtime];
    const std::string environment =
        ReadProcFile(host_, fmt::format("{}/{}/environ", proc_, process.pid), kEnvironmentBytesMax);
    if (process.has_tap) {
      CheckSocket(process, environment);
    } else {
      AddUntapped(process, environment);
    }
    CheckKineto(process, environment);
    CheckXla(process, environment);
    const std::string inspect = VariableOf(environment, "NEURON_RT_INSPECT_ENABLE");
    if (inspect.empty() || inspect == "0") return;
    inspecting_.Add(process.pid,
                    NameOf(process) +
                        " has NEURON_RT_INSPECT_ENABLE set: the runtime's own profiler is active, "
                        "and captures report `busy: other profiler`",
                    "start it without NEURON_RT_INSPECT_ENABLE");
  }

  // Returns the findings: good workers in one, then each problem, then the runtimes.
  std::vector<Finding> Take() {
    std::vector<Finding> findings;
    if (good_.size() == 1) {
      findings.push_back({"worker", Severity::kGood, NameOf(good_[0]) + " has the tap", ""});
    } else if (!good_.empty()) {
      std::vector<uint32_t> pids;
      for (const ProcessSeen& process : good_) pids.push_back(process.pid);
      findings.push_back({"worker", Severity::kGood,
                          fmt::format("{} workers have the tap: pid {}", pids.size(), SomeOf(pids)),
                          ""});
    }
    untapped_.MoveTo(findings);
    astray_.MoveTo(findings);
    inspecting_.MoveTo(findings);
    unasked_.MoveTo(findings);
    unnamed_.MoveTo(findings);
    AddRuntimes(findings);
    return findings;
  }

 private:
  // Adds a worker without the tap. Its environment shows whether LD_PRELOAD was never set,
  // replaced, or set in vain, and the fix depends on this.
  void AddUntapped(const ProcessSeen& process, const std::string& environment) {
    std::string what =
        NameOf(process) + " uses libnrt.so.1 without the tap, so captures cannot record it";
    const std::string preload = VariableOf(environment, "LD_PRELOAD");
    if (preload.find("libneurontrace_tap.so") != std::string::npos) {
      untapped_.Add(
          process.pid,
          fmt::format("{}, though it was started with LD_PRELOAD={}", what,
                      CleanText(preload, kShownVariableBytesMax)),
          "check that the file exists and is readable for this process, also in its container");
    } else if (!preload.empty()) {
      untapped_.Add(process.pid,
                    fmt::format("{}; it was started with LD_PRELOAD={}", what,
                                CleanText(preload, kShownVariableBytesMax)),
                    "a script or launcher replaced LD_PRELOAD; change it to append, as in "
                    "LD_PRELOAD=\"LIBRARY:$LD_PRELOAD\"");
    } else {
      if (!environment.empty()) what += "; it was started without LD_PRELOAD";
      untapped_.Add(process.pid, what,
                    "start it with LD_PRELOAD=…/libneurontrace_tap.so in its own environment "
                    "(sudo, env -i and some launchers drop it)");
    }
  }

  // Compares the socket of the tap with that of the agent. Without a readable environment nothing
  // is assumed to be wrong.
  void CheckSocket(const ProcessSeen& process, const std::string& environment) {
    std::string socket = VariableOf(environment, "NEURONTRACE_AGENT_SOCKET");
    if (socket.empty()) socket = kDefaultSocket;
    if (socket == agent_socket_ || environment.empty()) {
      good_.push_back(process);
      return;
    }
    astray_.Add(process.pid,
                fmt::format("{} has the tap, which looks for its agent at {}", NameOf(process),
                            CleanText(socket, kShownVariableBytesMax)),
                fmt::format("start it with NEURONTRACE_AGENT_SOCKET={}", agent_socket_));
  }

  // Names the variables without which PyTorch in this worker does not ask the agent for orders, or
  // would write its traces elsewhere. Without a readable environment nothing is assumed.
  void CheckKineto(const ProcessSeen& process, const std::string& environment) {
    if (agent_.kineto_directory.empty() || environment.empty()) return;
    std::vector<std::string> lacks;
    const auto require = [&](const char* name, const std::string& value) {
      if (VariableOf(environment, name) != value)
        lacks.push_back(fmt::format("{}={}", name, value));
    };
    require("KINETO_USE_DAEMON", "1");
    require("KINETO_IPC_SOCKET_DIR", agent_.kineto_directory);
    // Kineto writes below /tmp without being told.
    if (!agent_.framework_directory.empty() && !agent_.framework_directory.starts_with("/tmp/")) {
      require("KINETO_ONDEMAND_TRACE_DIR", agent_.framework_directory);
    }
    if (lacks.empty()) return;
    unasked_.Add(process.pid,
                 fmt::format("{} cannot be asked for a framework trace: it was started without {}",
                             NameOf(process), fmt::join(lacks, ", ")),
                 fmt::format("if it runs PyTorch, start it with {}", fmt::join(lacks, " ")));
  }

  // Names the variable by which the agent finds the port of XLA's profiler in a worker. Without a
  // readable environment nothing is assumed.
  void CheckXla(const ProcessSeen& process, const std::string& environment) {
    if (!process.has_xla || agent_.framework_directory.empty() || environment.empty()) return;
    if (!VariableOf(environment, kXlaPortVariable).empty()) return;
    unnamed_.Add(process.pid,
                 fmt::format("{} has XLA and was started without {}: `capture --framework=xla` "
                             "finds its profiler only if the process listens on a single port",
                             NameOf(process), kXlaPortVariable),
                 fmt::format("start jax.profiler.start_server(PORT) (torch_xla.debug.profiler has "
                             "the same) and set {}=PORT, one port for each process",
                             kXlaPortVariable));
  }

  // Reports which files the workers have mapped: their names contain the versions.
  void AddRuntimes(std::vector<Finding>& findings) const {
    size_t shown = 0;
    for (const auto& [file, workers] : runtimes_) {
      if (++shown > kShownMax) break;
      const Severity severity = runtimes_.size() == 1 ? Severity::kGood : Severity::kNote;
      findings.push_back(
          {"worker runtime", severity,
           fmt::format("{} in {} {}", file, workers, workers == 1 ? "process" : "processes"), ""});
    }
  }

  // The view, and paths of the proc file system and of the agent's socket.
  HostView& host_;
  const std::string& proc_;
  const std::string& agent_socket_;
  const LocalAgent& agent_;
  std::vector<ProcessSeen> good_;
  Problem untapped_{Severity::kBroken, "use libnrt.so.1 without the tap"};
  Problem astray_{Severity::kWarning, "have the tap, which looks for its agent elsewhere"};
  Problem inspecting_{Severity::kWarning, "have NEURON_RT_INSPECT_ENABLE set"};
  Problem unasked_{Severity::kNote, "cannot be asked for a framework trace"};
  Problem unnamed_{Severity::kNote, "have XLA and do not name the port of its profiler"};
  // Number of processes by mapped file.
  std::map<std::string, size_t> runtimes_;
};

}  // namespace

std::vector<Finding> CheckWorkers(HostView& host, const std::string& proc,
                                  const std::string& agent_socket, const LocalAgent& agent) {
  WorkersSeen workers(host, proc, agent_socket, agent);
  size_t unreadable = 0;
  for (const uint32_t pid : ListProcesses(host, proc)) {
    // Only the owner and root may read the maps of a process.
    if (!host.Read(fmt::format("{}/{}/maps", proc, pid), 0, 1).ok()) {
      ++unreadable;
      continue;
    }
    const ProcessSeen process = ExamineProcess(host, proc, pid);
    if (process.has_runtime) workers.Examine(process);
  }
  std::vector<Finding> findings = workers.Take();
  if (findings.empty()) {
    findings.push_back(
        {"worker", Severity::kNote, "no process on this machine uses libnrt.so.1", ""});
  }
  if (unreadable > 0 && host.user() != 0) {
    findings.push_back(
        {"worker", Severity::kNote,
         fmt::format("{} processes of other users could not be inspected", unreadable),
         "run `neurontrace doctor` as root to see them"});
  }
  return findings;
}

std::vector<Finding> CheckPreload(HostView& host, const std::vector<std::string>& programs) {
  std::vector<Finding> findings;
  std::string preload = host.Environment("LD_PRELOAD");
  // ld.so(8) separates the entries by colons or spaces.
  std::replace(preload.begin(), preload.end(), ':', ' ');
  for (size_t from = 0; from < preload.size();) {
    const size_t end = std::min(preload.find(' ', from), preload.size());
    const std::string library = preload.substr(from, end - from);
    from = end + 1;
    // A name without a slash is searched for by the loader, which cannot be repeated here.
    if (library.empty() || library.find('/') == std::string::npos || host.Examine(library))
      continue;
    findings.push_back({"LD_PRELOAD", Severity::kWarning, library + " does not exist",
                        "remove it from LD_PRELOAD, or correct the path"});
  }
  for (const std::string& program : programs) {
    const std::string obstacle = PreloadObstacle(host, program);
    if (obstacle.empty()) {
      findings.push_back(
          {"LD_PRELOAD", Severity::kGood, program + " accepts preloaded libraries", ""});
    } else {
      findings.push_back({"LD_PRELOAD", Severity::kBroken, obstacle,
                          "start the worker with a different program, or link it dynamically"});
    }
  }
  return findings;
}

}  // namespace neurontrace::cli
