// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/runtime_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

// What the path of a mapped file ends with, before the version.
constexpr std::string_view kRuntimeLibrary = "/libnrt.so";
constexpr std::string_view kTapLibrary = "/libneurontrace_tap.so";
// Limits of what is read of one process, which may make its files as long as it likes.
constexpr size_t kStatBytesMax = 4'096;
constexpr size_t kCommandLineBytesRead = 4'096;
constexpr size_t kEnvironmentBytesMax = size_t{256} << 10;
constexpr size_t kEnvironmentValueBytesMax = 4'096;
// Bounds the walk, since parents that are remembered under reused pids may form a cycle.
constexpr int kAncestorsMax = 64;
// Fields of PID/stat, counted from 1.
constexpr int kParentField = 4;
constexpr int kStatStartTimeField = 22;
constexpr int kAddressSpaceField = 23;
constexpr int kCodeField = 26;

// Reads a file into `text`, up to `bytes_max` bytes; the text is empty if it cannot be read. It
// follows no link and waits for no pipe.
void ReadFile(const std::string& path, size_t bytes_max, std::string& text) {
  constexpr size_t kStep = size_t{64} << 10;
  text.clear();
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return;
  while (text.size() < bytes_max) {
    const size_t before = text.size();
    text.resize(before + std::min(kStep, bytes_max - before));
    const ssize_t size = read(fd.get(), text.data() + before, text.size() - before);
    text.resize(before + std::max<ssize_t>(size, 0));
    if (size <= 0) return;
  }
}

// The fields of PID/stat that are used (proc_pid_stat(5)).
struct Stat {
  uint32_t parent = 0;
  uint64_t start_time_ticks = 0;
  uint64_t address_space_bytes = 0;
  uint64_t code_address = 0;  // another after exec
};
// Returns nothing for a text that is not complete up to kCodeField, or has something else than a
// number in one of the fields.
std::optional<Stat> ParseStat(std::string_view text) {
  // The second field is the program's name in parentheses and may hold anything, spaces included.
  size_t at = text.rfind(')');
  if (at == std::string_view::npos) return std::nullopt;
  Stat stat;
  for (int field = 3; field <= kCodeField; ++field) {
    at = text.find(' ', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
    const auto take = [&](auto& number) {
      return std::from_chars(text.data() + at, text.data() + text.size(), number).ec == std::errc();
    };
    bool sound = true;
    if (field == kParentField) sound = take(stat.parent);
    if (field == kStatStartTimeField) sound = take(stat.start_time_ticks);
    if (field == kAddressSpaceField) sound = take(stat.address_space_bytes);
    if (field == kCodeField) sound = take(stat.code_address);
    if (!sound) return std::nullopt;
  }
  return stat;
}

// Returns whether one of the mapped files is `library` in any version: its name ends there, or
// continues with a dot.
bool Maps(std::string_view maps, std::string_view library) {
  for (size_t at = maps.find(library); at != std::string_view::npos;
       at = maps.find(library, at + 1)) {
    const size_t end = at + library.size();
    if (end >= maps.size() || maps[end] == '.' || maps[end] == '\n' || maps[end] == ' ') {
      // The file's name, and not a folder's; a line is looked at to its end once.
      const size_t behind = maps.find_first_of("/\n", end);
      if (behind == std::string_view::npos || maps[behind] == '\n') return true;
      at = behind - 1;
    }
  }
  return false;
}

}  // namespace

void RuntimeProcesses::BeginRound() {
  in_round_ = true;
  ++round_;
  to_inspect_.clear();
  DIR* const directory = opendir(root_.c_str());
  if (directory == nullptr) return;
  while (const dirent* const entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    uint32_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    // Beyond the limit new processes are not examined; those that are remembered still are.
    const auto known = processes_.find(pid);
    if (known == processes_.end() && processes_.size() >= kProcessesMax) continue;
    processes_[pid].round = round_;
    to_inspect_.push_back(pid);
  }
  closedir(directory);
  // The lowest pids first, so that an interrupted round has seen those that are probably the
  // oldest.
  std::sort(to_inspect_.rbegin(), to_inspect_.rend());
}

void RuntimeProcesses::EndRound() {
  in_round_ = false;
  std::erase_if(processes_, [this](const auto& entry) { return entry.second.round != round_; });
  for (auto& [pid, seen] : processes_) seen.rounds += seen.found ? 1 : 0;
}

bool RuntimeProcesses::Poll(uint64_t now_ns) {
  if (!in_round_) BeginRound();
  size_t bytes = 0;
  size_t inspected = 0;
  while (!to_inspect_.empty() && bytes < kScanBytes && inspected < kScanProcesses) {
    const uint32_t pid = to_inspect_.back();
    to_inspect_.pop_back();
    Seen& seen = processes_[pid];
    // Those that are not due cost nothing and do not count for the limits of a step.
    if (seen.next_ns > now_ns) continue;
    ++inspected;
    bytes += Inspect(pid, now_ns, seen);
  }
  if (!to_inspect_.empty()) return false;
  EndRound();
  return true;
}

size_t RuntimeProcesses::Inspect(uint32_t pid, uint64_t now_ns, Seen& seen) {
  ReadFile(fmt::format("{}/{}/stat", root_, pid), kStatBytesMax, buffer_);
  const size_t bytes = buffer_.size();
  const std::optional<Stat> stat = ParseStat(buffer_);
  if (!stat) {
    seen.round = 0;  // gone meanwhile, or nothing to be said of it
    return bytes;
  }
  // The pid was reused: nothing that is known of it holds.
  if (seen.start_time_ticks != stat->start_time_ticks) {
    seen = Seen{.start_time_ticks = stat->start_time_ticks, .round = round_};
  }
  seen.parent = stat->parent;
  // Loading a library enlarges the address space, and exec usually moves the code.
  const bool changed = std::exchange(seen.address_space_bytes, stat->address_space_bytes) !=
                       stat->address_space_bytes;
  const bool replaced = std::exchange(seen.code_address, stat->code_address) != stat->code_address;
  // Once the tap is mapped, only exec can change what matters here.
  const bool settled = seen.found && seen.has_tap && !replaced;
  const bool kernel = stat->address_space_bytes == 0;
  seen.again_ns = kernel                  ? kRescanMaxNs
                  : changed || seen.found ? kRescanMinNs
                                          : std::min(2 * seen.again_ns, kRescanMaxNs);
  seen.next_ns = now_ns + seen.again_ns;
  if (kernel) seen.found = false;
  if (kernel || settled || !(changed || replaced)) return bytes;
  return bytes + ReadMappings(pid, seen);
}

size_t RuntimeProcesses::ReadMappings(uint32_t pid, Seen& seen) {
  ++lists_read_;
  ReadFile(fmt::format("{}/{}/maps", root_, pid), kMapsBytesMax, buffer_);
  seen.found = Maps(buffer_, kRuntimeLibrary);
  seen.has_tap = seen.found && Maps(buffer_, kTapLibrary);
  if (!seen.found) seen.rounds = 0;
  return buffer_.size();
}

template <typename Visit>
void RuntimeProcesses::VisitAncestors(uint32_t pid, Visit visit) const {
  auto at = processes_.find(pid);
  for (int i = 0; i < kAncestorsMax && at != processes_.end(); ++i) {
    at = processes_.find(at->second.parent);
    if (at != processes_.end() && at->first != pid) visit(at->first, at->second);
  }
}

std::vector<RuntimeProcesses::Process> RuntimeProcesses::Find(
    const std::function<bool(uint32_t, uint64_t)>& has_worker) const {
  // First the ancestors of workers are collected, and of each other family the eldest process.
  std::vector<uint32_t> launchers;
  std::vector<Process> found;
  for (const auto& [pid, seen] : processes_) {
    if (!seen.found) continue;
    if (has_worker(pid, seen.start_time_ticks)) {
      VisitAncestors(pid, [&](uint32_t ancestor, const Seen&) { launchers.push_back(ancestor); });
      continue;
    }
    bool oldest_process = true;
    VisitAncestors(pid, [&](uint32_t, const Seen& ancestor) {
      oldest_process = oldest_process && !ancestor.found;
    });
    if (oldest_process) found.push_back({pid, seen.start_time_ticks, seen.has_tap, seen.rounds});
  }
  // Then what started a worker is removed: a launcher that has the runtime mapped belongs to the
  // family of its worker.
  std::sort(launchers.begin(), launchers.end());
  std::erase_if(found, [&](const Process& process) {
    return std::binary_search(launchers.begin(), launchers.end(), process.pid);
  });
  return found;
}

std::vector<uint32_t> RuntimeProcesses::AncestorsOf(uint32_t pid) const {
  std::vector<uint32_t> ancestors;
  VisitAncestors(pid, [&](uint32_t ancestor, const Seen&) { ancestors.push_back(ancestor); });
  return ancestors;
}

ProcessDescription ReadProcessDescription(const std::string& proc_root, uint32_t pid,
                                          const std::function<bool(std::string_view)>& wanted) {
  ProcessDescription words;
  ReadFile(fmt::format("{}/{}/cmdline", proc_root, pid), kCommandLineBytesRead, words.command);
  while (words.command.ends_with('\0')) words.command.pop_back();
  std::replace(words.command.begin(), words.command.end(), '\0', ' ');
  std::string text;
  ReadFile(fmt::format("{}/{}/environ", proc_root, pid), kEnvironmentBytesMax, text);
  words.has_environment = !text.empty();
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view variable = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !wanted(variable.substr(0, equals))) continue;
    const std::string_view value = variable.substr(equals + 1);
    if (value.size() > kEnvironmentValueBytesMax) continue;
    words.environment.emplace(variable.substr(0, equals), value);
  }
  return words;
}

}  // namespace neurontrace
