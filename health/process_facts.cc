// SPDX-License-Identifier: Apache-2.0
#include "health/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/small_file.h"

namespace neurontrace {
namespace {

// Fields behind the name, from the third of proc(5) on.
constexpr size_t kUserTime = 14 - 3;
constexpr size_t kSystemTime = 15 - 3;
constexpr size_t kThreads = 20 - 3;
constexpr size_t kStartTime = 22 - 3;
constexpr size_t kVirtualBytes = 23 - 3;
constexpr size_t kResidentPages = 24 - 3;
constexpr size_t kFields = kResidentPages + 1;

constexpr size_t kStatBytesMax = 4096;
constexpr size_t kBootFileBytesMax = size_t{1} << 20;

std::optional<uint64_t> Number(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// When the machine was booted, in seconds since 1970.
std::optional<uint64_t> BootSeconds() {
  const auto text = ReadSmallFile("/proc/stat", kBootFileBytesMax);
  if (!text.ok()) return std::nullopt;
  constexpr std::string_view kLine = "\nbtime ";
  const size_t at = text->find(kLine);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(at + kLine.size());
  return Number(rest.substr(0, rest.find('\n')));
}

double TicksPerSecond() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

std::optional<ProcessStat> OwnStat() {
  const auto line = ReadSmallFile("/proc/self/stat", kStatBytesMax);
  return line.ok() ? ParseProcessStat(*line) : std::nullopt;
}

std::optional<uint64_t> OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return std::nullopt;
  uint64_t count = 0;
  for (auto it = entries; it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (error) return std::nullopt;
    ++count;
  }
  return count - 1;  // but the one that this was read by
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view line) {
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(name_end + 1);
  std::array<std::string_view, kFields> fields;
  for (std::string_view& field : fields) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(begin);
    field = rest.substr(0, rest.find_first_of(" \n"));
    rest.remove_prefix(field.size());
  }
  const auto user = Number(fields[kUserTime]);
  const auto system = Number(fields[kSystemTime]);
  const auto threads = Number(fields[kThreads]);
  const auto start = Number(fields[kStartTime]);
  const auto virtual_bytes = Number(fields[kVirtualBytes]);
  const auto resident = Number(fields[kResidentPages]);
  if (!user || !system || !threads || !start || !virtual_bytes || !resident) return std::nullopt;
  return ProcessStat{*user + *system, *threads, *start, *virtual_bytes, *resident};
}

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  if (const auto stat = OwnStat()) {
    facts.cpu_seconds = static_cast<double>(stat->cpu_ticks) / TicksPerSecond();
    facts.threads = stat->threads;
    facts.virtual_bytes = stat->virtual_bytes;
    facts.resident_bytes = stat->resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  facts.open_fds = OpenDescriptors();
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    facts.max_fds = limit.rlim_cur;
  }
  return facts;
}

std::optional<double> ReadProcessStart() {
  const auto boot = BootSeconds();
  const auto stat = OwnStat();
  if (!boot || !stat) return std::nullopt;
  return static_cast<double>(*boot) + static_cast<double>(stat->start_ticks) / TicksPerSecond();
}

}  // namespace neurontrace
