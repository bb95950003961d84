// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host/proc_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// user, nice, system, idle, iowait, irq, softirq, steal; guest and guest_nice follow and are part
// of user and nice. Kernels before 2.6 have only the first four.
constexpr size_t kTimesCounted = 8;
constexpr size_t kTimesMin = 4;
constexpr size_t kIdle = 3;
constexpr size_t kIoWait = 4;

// Removes and returns the first line of the text, without its end.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Removes and returns the next word; empty at the end of the line.
std::string_view ConsumeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// Returns the number that the whole word is; nothing for anything else.
template <typename Number>
std::optional<Number> NumberOf(std::string_view word) {
  Number number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  if (word.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

// Saturates: the numbers come from a file that a container runtime may fake (lxcfs).
uint64_t SumOf(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

double Rounded(double percent) { return std::round(percent * 100) / 100; }

// Parses one line that begins with "cpu". Fails with INVALID_ARGUMENT and the line's beginning.
absl::StatusOr<CpuTimes> ParseCpuLine(std::string_view line) {
  // Cut, as it becomes part of an error message.
  const std::string_view whole = line.substr(0, 200);
  CpuTimes times;
  const std::string_view number = ConsumeWord(line).substr(3);
  if (!number.empty()) {
    const auto cpu = NumberOf<uint32_t>(number);
    if (!cpu || *cpu == CpuTimes::kAverage) {
      return InvalidArgument("/proc/stat: '{}' has an invalid processor number", whole);
    }
    times.cpu = *cpu;
  }
  size_t count = 0;
  for (std::string_view word = ConsumeWord(line); !word.empty();
       word = ConsumeWord(line), ++count) {
    const auto ticks = NumberOf<uint64_t>(word);
    if (!ticks) return InvalidArgument("/proc/stat: '{}' has a time that is not a number", whole);
    // Guest times are contained in user and nice, and would count twice.
    if (count >= kTimesCounted) continue;
    times.total = SumOf(times.total, *ticks);
    if (count == kIdle || count == kIoWait) times.idle = SumOf(times.idle, *ticks);
  }
  if (count < kTimesMin) return InvalidArgument("/proc/stat: '{}' has too few times", whole);
  return times;
}

}  // namespace

absl::StatusOr<std::vector<CpuTimes>> ParseCpuTimes(std::string_view proc_stat) {
  std::vector<CpuTimes> all;
  std::set<uint32_t> seen;
  while (proc_stat.starts_with("cpu")) {
    if (all.size() > limits::kHostCpusMax) {
      return ResourceExhausted("/proc/stat: more than {} processors", limits::kHostCpusMax);
    }
    ASSIGN_OR_RETURN(const CpuTimes times, ParseCpuLine(TakeLine(proc_stat)));
    if (!seen.insert(times.cpu).second) {
      return InvalidArgument("/proc/stat: a processor is listed twice");
    }
    all.push_back(times);
  }
  if (all.empty()) return InvalidArgument("/proc/stat: the first line is not a processor");
  return all;
}

CpuShare ShareBetween(const CpuTimes& before, const CpuTimes& after) {
  if (after.total <= before.total) return {};
  const uint64_t total = after.total - before.total;
  const uint64_t idle = after.idle > before.idle ? std::min(after.idle - before.idle, total) : 0;
  return {
      .known = true,
      .percent = Rounded(100.0 * static_cast<double>(total - idle) / static_cast<double>(total))};
}

absl::StatusOr<MemoryReading> ParseMemory(std::string_view proc_meminfo) {
  std::optional<uint64_t> total_kb;
  std::optional<uint64_t> available_kb;
  while (!proc_meminfo.empty() && (!total_kb || !available_kb)) {
    std::string_view line = TakeLine(proc_meminfo);
    const std::string_view key = ConsumeWord(line);
    std::optional<uint64_t>* value = nullptr;
    // MemAvailable rather than MemFree, as page cache is not in use (proc_meminfo(5), since Linux
    // 3.14).
    if (key == "MemTotal:") value = &total_kb;
    if (key == "MemAvailable:") value = &available_kb;
    if (value == nullptr) continue;
    *value = NumberOf<uint64_t>(ConsumeWord(line));
    if (!*value || **value > UINT64_MAX / 1024 || ConsumeWord(line) != "kB") {
      return InvalidArgument("/proc/meminfo: {} is not a number of kB", key);
    }
  }
  if (!total_kb || !available_kb) {
    return InvalidArgument("/proc/meminfo: {} is missing", total_kb ? "MemAvailable" : "MemTotal");
  }
  MemoryReading memory;
  memory.total_bytes = *total_kb * 1024;
  memory.used_bytes = memory.total_bytes - std::min(*available_kb * 1024, memory.total_bytes);
  return memory;
}

double PercentUsed(const MemoryReading& memory) {
  if (memory.total_bytes == 0) return 0;
  return Rounded(100.0 * static_cast<double>(memory.used_bytes) /
                 static_cast<double>(memory.total_bytes));
}

}  // namespace neurontrace
