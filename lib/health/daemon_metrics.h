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

// The fields of /proc/PID/stat that are used.
struct ProcessStat {
  // As in proc_pid_stat(5).
  uint64_t cpu_ticks = 0;  // user and system, in units of sysconf(_SC_CLK_TCK)
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since the machine's boot
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};
// Parses a line of /proc/PID/stat; nullopt if it is not one. The process's name in it may contain
// anything. Pure.
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

// Resources of this process. A field is empty if the kernel does not report it.
struct ProcessFacts {
  // User and system time, over all threads.
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> threads;
  // Descriptors that are open now, without the one that counts them.
  std::optional<uint64_t> open_fds;
  std::optional<uint64_t> max_fds;  // the soft limit; empty if there is none
};
// Reads the facts of this moment: a line and a directory of /proc, in some 20 us. Any thread.
ProcessFacts ReadProcessFacts();

// Returns when this process was started, in seconds since 1970 by the current clock; it does not
// change. Reads a file whose length depends on the number of processors. Any thread.
std::optional<double> ReadProcessStart();

// A daemon's own metrics, and those that every daemon has and that are read at each scrape: its
// build, its process, and its conditions. docs/operator/metrics.md describes all of them. Any
// thread.
class DaemonMetrics final : public prometheus::Collectable {
 public:
  struct Options {
    std::string program;                  // "neurontrace-agent"
    std::string condition_metric;         // "neurontrace_agent_ready_condition"
    prometheus::Labels labels;            // of the conditions, besides their names, and of the age
    std::string age_metric;               // "neurontrace_agent_sequence_age_seconds"
    const LoopWatchdog* turns = nullptr;  // its age is reported; null: none
  };

  // `health` and `options.turns` must outlive this.
  DaemonMetrics(std::shared_ptr<prometheus::Registry> registry, const HealthState& health,
                Options options);

  // Returns the registry's metrics and the others. Called by HealthServer's threads.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  // Return one family each: build, conditions.
  prometheus::MetricFamily Build() const;
  prometheus::MetricFamily Conditions() const;
  // Append families that may be absent.
  void AddAge(std::vector<prometheus::MetricFamily>& families) const;
  void AddProcess(std::vector<prometheus::MetricFamily>& families) const;

  const std::shared_ptr<prometheus::Registry> registry_;
  // Evaluated at each scrape, which also evaluates watched conditions.
  const HealthState& health_;
  const Options options_;
  // Read once; empty if /proc is not mounted.
  const std::optional<double> start_seconds_;
};

}  // namespace neurontrace
