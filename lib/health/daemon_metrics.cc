// SPDX-License-Identifier: Apache-2.0
#include "lib/health/daemon_metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lib/base/build_facts.h"
#include "lib/base/small_file.h"

namespace neurontrace {
namespace {

// Indexes of the fields after the name, which begin with the third one of proc_pid_stat(5).
constexpr size_t kUserTime = 14 - 3;
constexpr size_t kSystemTime = 15 - 3;
constexpr size_t kThreads = 20 - 3;
constexpr size_t kStartTime = 22 - 3;
constexpr size_t kVirtualBytes = 23 - 3;
constexpr size_t kResidentPages = 24 - 3;
constexpr size_t kFields = kResidentPages + 1;

// One line, whose length is limited by that of its numbers and the name of at most 15 bytes.
constexpr size_t kStatBytesMax = 4096;
// /proc/stat has a line for each processor, and one number for each interrupt.
constexpr size_t kBootFileBytesMax = size_t{1} << 20;

// Returns the number if the whole text is one.
std::optional<uint64_t> Number(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Returns when the machine was booted, in seconds since 1970, by the line btime of /proc/stat.
std::optional<uint64_t> BootSeconds() {
  const auto text = ReadSmallFile("/proc/stat", kBootFileBytesMax);
  if (!text.ok()) return std::nullopt;
  constexpr std::string_view kLine = "\nbtime ";
  const size_t at = text->find(kLine);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(at + kLine.size());
  return Number(rest.substr(0, rest.find('\n')));
}

// Returns the unit of times in /proc/PID/stat, usually 100 per second.
double TicksPerSecond() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Returns the fields of this process; nullopt if /proc is not mounted.
std::optional<ProcessStat> OwnStat() {
  const auto line = ReadSmallFile("/proc/self/stat", kStatBytesMax);
  return line.ok() ? ParseProcessStat(*line) : std::nullopt;
}

// Returns how many descriptors this process has open.
std::optional<uint64_t> OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return std::nullopt;
  uint64_t count = 0;
  for (auto it = entries; it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (error) return std::nullopt;
    ++count;
  }
  // The descriptor with which this directory was read is one of them.
  return count - 1;
}

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Returns a gauge with a value and labels.
ClientMetric GaugeOf(double value, const prometheus::Labels& labels) {
  ClientMetric metric;
  metric.gauge.value = value;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  return metric;
}

// Appends a family with one gauge, or nothing if the value is unknown.
template <typename Number>
void AddGauge(const char* name, const char* help, const std::optional<Number>& value,
              std::vector<MetricFamily>& families) {
  if (!value) return;
  families.push_back({name, help, MetricType::Gauge, {GaugeOf(static_cast<double>(*value), {})}});
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view line) {
  // The name may contain parentheses and blanks itself, so the last parenthesis ends it.
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

DaemonMetrics::DaemonMetrics(std::shared_ptr<prometheus::Registry> registry,
                             const HealthState& health, Options options)
    : registry_(std::move(registry)),
      health_(health),
      options_(std::move(options)),
      start_seconds_(ReadProcessStart()) {}

// Everything is read at each scrape, because a process that hangs must not report old values as new
// ones.
std::vector<MetricFamily> DaemonMetrics::Collect() const {
  std::vector<MetricFamily> families = registry_->Collect();
  families.push_back(Build());
  families.push_back(Conditions());
  AddAge(families);
  AddProcess(families);
  return families;
}

MetricFamily DaemonMetrics::Build() const {
  const neurontrace::Build build = ThisBuild();
  return {"neurontrace_build_info",
          "Version and build of the program, as labels",
          MetricType::Gauge,
          {GaugeOf(1, {{"program", options_.program},
                       {"version", std::string(build.version)},
                       {"commit", std::string(build.commit)},
                       {"compiler", std::string(build.compiler)},
                       {"build_type", std::string(build.type)}})}};
}

MetricFamily DaemonMetrics::Conditions() const {
  MetricFamily family{
      options_.condition_metric, "1 while a condition of /readyz holds", MetricType::Gauge, {}};
  for (const HealthState::View& condition : health_.conditions()) {
    prometheus::Labels labels = options_.labels;
    labels["condition"] = condition.name;
    family.metric.push_back(GaugeOf(condition.good ? 1 : 0, labels));
  }
  return family;
}

// The age is not in the registry, whose gauges the sequence itself sets: if the sequence hangs, its
// age must still grow.
void DaemonMetrics::AddAge(std::vector<MetricFamily>& families) const {
  if (options_.turns == nullptr) return;
  const std::optional<uint64_t> age_ns = options_.turns->AgeNs();
  if (!age_ns) return;
  families.push_back({options_.age_metric,
                      "Seconds since the program's event loop last ran a task",
                      MetricType::Gauge,
                      {GaugeOf(static_cast<double>(*age_ns) * 1e-9, options_.labels)}});
}

void DaemonMetrics::AddProcess(std::vector<MetricFamily>& families) const {
  const ProcessFacts facts = ReadProcessFacts();
  if (facts.cpu_seconds) {
    ClientMetric metric;
    // A counter, as scrapers compute rates from it.
    metric.counter.value = *facts.cpu_seconds;
    families.push_back({"process_cpu_seconds_total",
                        "Processor time of the process, user and system",
                        MetricType::Counter,
                        {metric}});
  }
  AddGauge("process_resident_memory_bytes", "Resident memory of the process", facts.resident_bytes,
           families);
  AddGauge("process_virtual_memory_bytes", "Virtual memory of the process", facts.virtual_bytes,
           families);
  AddGauge("process_threads", "Threads of the process", facts.threads, families);
  AddGauge("process_open_fds", "Open file descriptors", facts.open_fds, families);
  AddGauge("process_max_fds", "Limit of open file descriptors", facts.max_fds, families);
  AddGauge("process_start_time_seconds", "Start time of the process, in seconds since 1970",
           start_seconds_, families);
}

}  // namespace neurontrace
