// SPDX-License-Identifier: Apache-2.0
#include "cli/process_tree.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace::cli {
namespace {

constexpr size_t kUntappedMax = 8;
// Limits walks over parents, which change while they are read and could form a cycle.
constexpr int kDepthMax = 1000;
constexpr size_t kStatBytesMax = 4096;
constexpr size_t kMapsBytesMax = 8u << 20;
constexpr size_t kNameBytesMax = 64;  // the kernel has 15

// Returns the path of a process's file.
std::string PathOf(const std::string& proc, uint32_t pid, const char* name) {
  return proc + "/" + std::to_string(pid) + "/" + name;
}

// Parses the contents of /proc/PID/stat, "7 (a name) S 1 …", and returns name and parent. The name
// may contain anything, including ")", so its last one counts. Returns "" and 0 for other texts.
std::pair<std::string, uint32_t> NameAndParent(const std::string& stat) {
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return {"", 0};
  uint32_t parent = 0;
  if (stat.size() > close + 4) {
    std::from_chars(stat.data() + close + 4, stat.data() + stat.size(), parent);
  }
  return {stat.substr(open + 1, close - open - 1), parent};
}

// Returns the file of the first mapping whose path contains `part`; "" if there is none. A line of
// maps has the path after its last column.
std::string MappedFile(const std::string& maps, std::string_view part) {
  const size_t at = maps.find(part);
  if (at == std::string::npos) return "";
  const size_t line = at == 0 ? 0 : maps.rfind('\n', at - 1) + 1;  // 0 where there is none before
  const size_t path = maps.find('/', line);
  return maps.substr(path, std::min(maps.find('\n', path), maps.size()) - path);
}

}  // namespace

std::string ReadProcFile(HostView& host, const std::string& path, size_t bytes_max) {
  const auto text = host.Read(path, 0, bytes_max);
  return text.ok() ? *text : "";
}

std::vector<uint32_t> ListProcesses(HostView& host, const std::string& proc) {
  std::vector<uint32_t> pids;
  for (const std::string& name : host.List(proc)) {
    uint32_t pid = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data(), end, pid);
    if (error == std::errc() && rest == end) pids.push_back(pid);
  }
  return pids;
}

ProcessSeen ExamineProcess(HostView& host, const std::string& proc, uint32_t pid) {
  const std::string maps = ReadProcFile(host, PathOf(proc, pid, "maps"), kMapsBytesMax);
  const std::string stat = ReadProcFile(host, PathOf(proc, pid, "stat"), kStatBytesMax);
  return {.pid = pid,
          .name = CleanText(NameAndParent(stat).first, kNameBytesMax),
          .has_runtime = maps.find("/libnrt.so") != std::string::npos,
          .runtime = MappedFile(maps, "/libnrt.so"),
          .has_tap = maps.find("/libneurontrace_tap.so") != std::string::npos,
          .has_xla = HasXla(maps),
          .has_libc = maps.find("/libc.so") != std::string::npos ||
                      maps.find("/libc-2.") != std::string::npos};  // before glibc 2.34
}

void ProcessTree::Scan() {
  // The children of all processes are collected first: /proc shows only parents.
  std::multimap<uint32_t, uint32_t> children;
  for (const uint32_t pid : ListProcesses(host_, proc_)) {
    const std::string stat = ReadProcFile(host_, PathOf(proc_, pid, "stat"), kStatBytesMax);
    children.emplace(NameAndParent(stat).second, pid);
  }
  // A process may appear under two parents, as the list is not read at one moment; each is examined
  // once.
  std::set<uint32_t> seen = {root_};
  std::vector<uint32_t> waiting = {root_};
  while (!waiting.empty()) {
    const uint32_t pid = waiting.back();
    waiting.pop_back();
    Record(ExamineProcess(host_, proc_, pid));
    const auto [first, last] = children.equal_range(pid);
    for (auto it = first; it != last; ++it) {
      if (seen.insert(it->second).second) waiting.push_back(it->second);
    }
  }
}

bool ProcessTree::Has(uint32_t pid) const {
  // Process 1 is nobody's command, and 0 means that the process has ended.
  for (int depth = 0; depth < kDepthMax && pid > 1; ++depth) {
    if (pid == root_) return true;
    pid = NameAndParent(ReadProcFile(host_, PathOf(proc_, pid, "stat"), kStatBytesMax)).second;
  }
  return false;
}

void ProcessTree::Record(const ProcessSeen& process) {
  has_seen_loaded_ |= process.has_libc;
  has_seen_tap_ |= process.has_tap;
  has_seen_runtime_ |= process.has_runtime;
  // The runtime may be mapped before the tap, so a later look replaces an earlier one.
  std::erase_if(untapped_, [&](const ProcessSeen& known) { return known.pid == process.pid; });
  if (process.has_runtime && !process.has_tap && untapped_.size() < kUntappedMax) {
    untapped_.push_back(process);
  }
}

}  // namespace neurontrace::cli
