// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "agent/stacks/limited_program.h"
#include "agent/stacks/python_stacks.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Of a file of one thread: comm, stat, wchan and syscall are all shorter.
constexpr size_t kProcBytes = 1'024;

// Returns the beginning of a file of /proc; empty if it cannot be read.
std::string ReadProc(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return "";
  std::array<char, kProcBytes> buffer;
  const ssize_t got = read(file.get(), buffer.data(), buffer.size());
  if (got <= 0) return "";
  return std::string(buffer.data(), static_cast<size_t>(got));
}

std::string Name(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return CleanText(text, limits::kStackNameBytesMax);
}

// Returns the letter after the command's name of PID/stat, which may itself have brackets in it.
std::string StateOf(std::string_view stat) {
  const size_t end = stat.rfind(')');
  if (end == std::string_view::npos || end + 2 >= stat.size()) return "";
  return Name(stat.substr(end + 2, 1));
}

// The file begins with the number of the call, -1, or "running"; it is empty or absent for those
// who may not trace the process.
int64_t SystemCallOf(std::string_view text) {
  if (text.starts_with("running")) return KernelThread::kNoCall;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < KernelThread::kNoCall) return KernelThread::kUnreadable;
  return number;
}

// Returns the ids in PID/task, ascending: the main thread has the lowest, as a rule.
std::vector<uint64_t> ThreadIds(const std::string& directory) {
  std::vector<uint64_t> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(directory.c_str()), closedir);
  if (folder == nullptr) return ids;
  while (const dirent* const entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error == std::errc() && end == name.data() + name.size()) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Returns why the program failed, judged by what py-spy 0.4 writes to stderr.
StacksOutcome OutcomeOfError(std::string_view err) {
  const auto has = [err](std::string_view text) {
    return err.find(text) != std::string_view::npos;
  };
  if (has("Permission denied") || has("Operation not permitted") || has("os error 1)")) {
    return StacksOutcome::kNotPermitted;
  }
  if (has("Failed to find python version") || has("Failed to find a python interpreter")) {
    return StacksOutcome::kNotPython;
  }
  return StacksOutcome::kFailed;
}

// Returns the first lines of an error, without the backtrace of the program itself.
std::string FirstLines(std::string_view err) {
  return CleanText(err.substr(0, err.find("\n\nStack backtrace")), limits::kDetailBytesMax / 2);
}

}  // namespace

std::string StackReader::Describe(StacksOutcome outcome, const std::string& program) {
  switch (outcome) {
    case StacksOutcome::kNoProgram:
      return "the agent has no --stacks-program; set it to the path of py-spy";
    case StacksOutcome::kNotInstalled:
      return fmt::format("{} cannot be started; install py-spy there", program);
    case StacksOutcome::kNotPermitted:
      return "the agent may not read the process; give it CAP_SYS_PTRACE";
    case StacksOutcome::kTimedOut:
      return fmt::format("{} was stopped after {} s", program,
                         limits::kStacksProgramNs / 1'000'000'000);
    case StacksOutcome::kTooLarge:
      return fmt::format("{} printed more than {} MiB", program,
                         limits::kStacksProgramBytesMax >> 20);
    case StacksOutcome::kOtherNamespace:
      return "the worker is in another pid namespace; run the agent in the host's";
    case StacksOutcome::kNotPython:
      return "the process runs no Python interpreter that py-spy finds";
    case StacksOutcome::kEnded:
      return "the process has ended";
    default:
      return "";
  }
}

StacksReading StackReader::Read(const WorkerIdentity& worker) const {
  StacksReading reading;
  reading.stacks.worker = worker;
  if (!IsAlive(worker)) {
    reading.stacks.outcome = StacksOutcome::kEnded;
  } else {
    ReadKernelThreads(worker, reading.stacks);
    RunProgram(worker, reading);
    // What was read may be of another process that got the number.
    if (!IsAlive(worker)) {
      reading = {};
      reading.stacks.worker = worker;
      reading.stacks.outcome = StacksOutcome::kEnded;
    }
  }
  if (reading.stacks.detail.empty()) {
    reading.stacks.detail = Describe(reading.stacks.outcome, options_.program);
  }
  return reading;
}

void StackReader::ReadKernelThreads(const WorkerIdentity& worker, WorkerStacks& stacks) const {
  const std::string tasks = fmt::format("{}/{}/task", options_.proc, worker.pid);
  const std::vector<uint64_t> ids = ThreadIds(tasks);
  for (const uint64_t id : ids) {
    if (stacks.kernel_threads.size() >= limits::kKernelThreadsMax) {
      stacks.kernel_threads_left_out = ids.size() - stacks.kernel_threads.size();
      return;
    }
    const std::string thread = fmt::format("{}/{}/", tasks, id);
    const std::string stat = ReadProc(thread + "stat");
    if (stat.empty()) continue;  // it has just ended
    std::string channel = Name(ReadProc(thread + "wchan"));
    // "0": it runs, or the agent may not see it.
    if (channel == "0") channel.clear();
    stacks.kernel_threads.push_back({.id = id,
                                     .name = Name(ReadProc(thread + "comm")),
                                     .state = StateOf(stat),
                                     .wait_channel = std::move(channel),
                                     .system_call = SystemCallOf(ReadProc(thread + "syscall"))});
  }
}

void StackReader::RunProgram(const WorkerIdentity& worker, StacksReading& reading) const {
  WorkerStacks& stacks = reading.stacks;
  if (options_.program.empty()) {
    stacks.outcome = StacksOutcome::kNoProgram;
    return;
  }
  auto result = RunLimited(
      {options_.program, "dump", "--json", "--nonblocking", "--pid", std::to_string(worker.pid)},
      {.time_ns = options_.time_ns,
       .out_bytes_max = limits::kStacksProgramBytesMax,
       .err_bytes_max = limits::kStacksErrorBytesMax,
       .cancelled = options_.cancelled});
  if (!result.ok()) {
    stacks.outcome =
        absl::IsNotFound(result.status()) ? StacksOutcome::kNotInstalled : StacksOutcome::kFailed;
    stacks.detail = std::string(result.status().message());
    return;
  }
  if (result->end != ProgramResult::End::kExited) {
    stacks.outcome = result->end == ProgramResult::End::kTimedOut ? StacksOutcome::kTimedOut
                                                                  : StacksOutcome::kTooLarge;
    return;
  }
  if (result->exit_code != 0) {
    stacks.outcome = OutcomeOfError(result->err);
    stacks.detail = Describe(stacks.outcome, options_.program);
    if (stacks.outcome == StacksOutcome::kFailed) {
      stacks.detail = fmt::format("{} failed with code {}: {}", options_.program, result->exit_code,
                                  FirstLines(result->err));
    }
    return;
  }
  auto python = ParsePythonStacks(result->out, worker.pid);
  // Kept even so: people may read it.
  reading.raw = std::move(result->out);
  if (!python.ok()) {
    stacks.outcome = StacksOutcome::kMalformed;
    stacks.detail = fmt::format("what {} printed is not of py-spy: {}", options_.program,
                                std::string(python.status().message()));
    return;
  }
  stacks.outcome = StacksOutcome::kTaken;
  stacks.threads = std::move(python->threads);
  stacks.left_out = python->left_out;
}

}  // namespace neurontrace
