// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/peer_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "agent/source/neuron/tap/runtime_processes.h"
#include "lib/base/clean_text.h"
#include "lib/base/small_file.h"

namespace neurontrace {
namespace {

// Limits of what is read of a file, and the form of a container's id.
constexpr size_t kProcFileBytesMax = 16 * 1024;
constexpr size_t kContainerIdDigits = 64;
// Fields of PID/stat, counted from 1 (proc_pid_stat(5)).
constexpr int kStateField = 3;
constexpr int kParentPidField = 4;
constexpr int kThreadsField = 20;
constexpr int kStartTimeField = 22;
// Prefix of what replaces the container id of a process that is known by its claim.
constexpr std::string_view kUnseen = "unseen-";

// Returns the beginning of a file, at most kProcFileBytesMax bytes, as its contents depend on the
// process; empty if it cannot be read.
std::string ReadProcFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kProcFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::optional<uint64_t> ProcFiles::StartTimeTicks(uint32_t pid) const {
  return StatField(pid, kStartTimeField);
}

bool ProcFiles::Lives(uint32_t pid, uint64_t start_time_ticks) const {
  if (StartTimeTicks(pid) != start_time_ticks) return false;
  const std::string state = StatText(pid, kStateField);
  if (state != "Z" && state != "X") return true;
  // Threads may outlive the one that the process began with.
  return StatField(pid, kThreadsField).value_or(1) > 1;
}

std::string ProcFiles::StatText(uint32_t pid, int wanted) const {
  const std::string text = ReadProcFile(fmt::format("{}/{}/stat", root_, pid));
  // The second field is the program's name in parentheses and may hold anything, spaces included.
  size_t at = text.rfind(')');
  if (at == std::string::npos) return "";
  for (int field = 2; field < wanted; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return "";
  }
  return text.substr(at + 1, text.find_first_of(" \n", at + 1) - at - 1);
}

std::optional<uint64_t> ProcFiles::StatField(uint32_t pid, int wanted) const {
  const std::string text = StatText(pid, wanted);
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

std::vector<uint32_t> ProcFiles::Ancestors(uint32_t pid) const {
  std::vector<uint32_t> ancestors;
  while (ancestors.size() < kAncestorsMax) {
    const std::optional<uint64_t> parent = StatField(pid, kParentPidField);
    if (!parent || *parent <= 1) break;  // 1 adopts what others left
    pid = static_cast<uint32_t>(*parent);
    ancestors.push_back(pid);
  }
  return ancestors;
}

std::string ProcFiles::ContainerId(uint32_t pid) const {
  const std::string text = ReadProcFile(fmt::format("{}/{}/cgroup", root_, pid));
  std::string found;
  size_t run = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && IsHexDigit(text[i])) {
      ++run;
      continue;
    }
    // The last one wins: outer groups, such as a pod's, precede the container's.
    if (run == kContainerIdDigits) found = text.substr(i - run, run);
    run = 0;
  }
  return found;
}

absl::StatusOr<std::string> ProcFiles::Mappings(uint32_t pid) const {
  return ReadSmallFile(fmt::format("{}/{}/maps", root_, pid), RuntimeProcesses::kMapsBytesMax);
}

std::string ProcFiles::BootId() const {
  std::string id = ReadProcFile(root_ + "/sys/kernel/random/boot_id");
  id.erase(std::find(id.begin(), id.end(), '\n'), id.end());
  return CleanText(id, kContainerIdDigits);
}

bool IsClaimed(const WorkerIdentity& worker) { return worker.container_id.starts_with(kUnseen); }

PeerIdentity IdentifyPeer(const ProcFiles& proc, uint32_t kernel_pid, uint32_t claimed_pid,
                          uint64_t claimed_start_ticks, ino_t buffer_inode) {
  if (kernel_pid == 0) {
    return {.pid = claimed_pid,
            .start_time_ticks = claimed_start_ticks,
            .container_id = fmt::format("{}{:x}", kUnseen, static_cast<uint64_t>(buffer_inode)),
            .claimed = true};
  }
  // Without /proc access to the process its own claim of the start time is used, and marked as
  // such.
  const std::optional<uint64_t> start = proc.StartTimeTicks(kernel_pid);
  return {.pid = kernel_pid,
          .start_time_ticks = start.value_or(claimed_start_ticks),
          .container_id = proc.ContainerId(kernel_pid),
          .claimed = !start};
}

}  // namespace neurontrace
