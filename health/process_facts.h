// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace neurontrace {

// What the kernel says of a process in the line of /proc/PID/stat.
struct ProcessStat {
  uint64_t cpu_ticks = 0;  // user and system, as sysconf(_SC_CLK_TCK) counts
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since the machine's boot
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};
// Nothing for what is no such line. The process's name in it may hold anything. Pure.
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

// Of this process, now; each nothing where the kernel does not say it.
struct ProcessFacts {
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> threads;
  std::optional<uint64_t> open_fds;
  std::optional<uint64_t> max_fds;  // the soft limit; nothing where there is none
};
// Reads a line and a directory of /proc: some 20 us. Any thread.
ProcessFacts ReadProcessFacts();

// When this process was started, in seconds since 1970, by the clock of now; does not change. Reads
// a file that is the longer the more processors there are. Any thread.
std::optional<double> ReadProcessStart();

}  // namespace neurontrace
