// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/health_state.h"
#include "health/turn_watch.h"

namespace neurontrace {

// A daemon's own metrics, and those that every daemon has and that are read when somebody asks: its
// build, its process, and which of its conditions hold. Any thread.
class DaemonMetrics final : public prometheus::Collectable {
 public:
  struct Options {
    std::string program;               // "neurontrace-agent"
    std::string condition_metric;      // "neurontrace_agent_ready_condition"
    prometheus::Labels labels;         // of the conditions, besides their names, and of the age
    std::string age_metric;            // "neurontrace_agent_sequence_age_seconds"
    const TurnWatch* turns = nullptr;  // whose age; null: there is none
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
