// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"

namespace neurontrace {

// The values of a process in /proc/PID/stat.
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

// A daemon's own metrics, and those that every daemon has and that are read when somebody asks: its
// build, its process, and which of its conditions hold. Any thread.
class DaemonMetrics final : public prometheus::Collectable {
 public:
  struct Options {
    std::string program;                  // "neurontrace-agent"
    std::string condition_metric;         // "neurontrace_agent_ready_condition"
    prometheus::Labels labels;            // of the conditions, besides their names, and of the age
    std::string age_metric;               // "neurontrace_agent_sequence_age_seconds"
    const LoopWatchdog* turns = nullptr;  // whose age; null: there is none
  };

  // `health` and `turns` outlive this.
  DaemonMetrics(std::shared_ptr<prometheus::Registry> registry, const HealthState& health,
                Options options);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::MetricFamily Build() const;
  prometheus::MetricFamily Conditions() const;
  void AddAge(std::vector<prometheus::MetricFamily>& families) const;
  void AddProcess(std::vector<prometheus::MetricFamily>& families) const;

  const std::shared_ptr<prometheus::Registry> registry_;
  const HealthState& health_;
  const Options options_;
  const std::optional<double> start_seconds_;
};

}  // namespace neurontrace
