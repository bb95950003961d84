// SPDX-License-Identifier: Apache-2.0
#include "health/daemon_metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <utility>

#include "base/build_facts.h"
#include "health/process_facts.h"

namespace neurontrace {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric GaugeOf(double value, const prometheus::Labels& labels) {
  ClientMetric metric;
  metric.gauge.value = value;
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  return metric;
}

template <typename Number>
void AddGauge(const char* name, const char* help, const std::optional<Number>& value,
              std::vector<MetricFamily>& families) {
  if (!value) return;
  families.push_back({name, help, MetricType::Gauge, {GaugeOf(static_cast<double>(*value), {})}});
}

}  // namespace

DaemonMetrics::DaemonMetrics(std::shared_ptr<prometheus::Registry> registry,
                             const HealthState& health, Options options)
    : registry_(std::move(registry)),
      health_(health),
      options_(std::move(options)),
      start_seconds_(ReadProcessStart()) {}

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
          "What runs, in its labels",
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

// Here and not in the registry: who sets gauges there is the sequence itself.
void DaemonMetrics::AddAge(std::vector<MetricFamily>& families) const {
  if (options_.turns == nullptr) return;
  const std::optional<uint64_t> age_ns = options_.turns->AgeNs();
  if (!age_ns) return;
  families.push_back({options_.age_metric,
                      "Since the program's sequence of tasks last had a turn",
                      MetricType::Gauge,
                      {GaugeOf(static_cast<double>(*age_ns) * 1e-9, options_.labels)}});
}

void DaemonMetrics::AddProcess(std::vector<MetricFamily>& families) const {
  const ProcessFacts facts = ReadProcessFacts();
  if (facts.cpu_seconds) {
    ClientMetric metric;
    metric.counter.value = *facts.cpu_seconds;
    families.push_back({"process_cpu_seconds_total",
                        "Processor time of the process, user and system",
                        MetricType::Counter,
                        {metric}});
  }
  AddGauge("process_resident_memory_bytes", "Memory that the process has", facts.resident_bytes,
           families);
  AddGauge("process_virtual_memory_bytes", "Addresses that the process has", facts.virtual_bytes,
           families);
  AddGauge("process_threads", "Threads of the process", facts.threads, families);
  AddGauge("process_open_fds", "File descriptors that are open", facts.open_fds, families);
  AddGauge("process_max_fds", "File descriptors that may be open", facts.max_fds, families);
  AddGauge("process_start_time_seconds", "When the process was started, since 1970", start_seconds_,
           families);
}

}  // namespace neurontrace
