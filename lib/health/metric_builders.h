// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/trace/loss_table.h"

namespace neurontrace {

// Make Prometheus metrics, which their registry owns and which live as long as it. The labels of a
// family are on all of its metrics. Making a metric that exists returns the existing one. Names and
// help texts are in docs/operator/metrics.md. Any thread.
inline prometheus::Family<prometheus::Counter>& MakeCounterFamily(
    prometheus::Registry& registry, const std::string& name, const std::string& help,
    const prometheus::Labels& labels = {}) {
  return prometheus::BuildCounter().Name(name).Help(help).Labels(labels).Register(registry);
}

// Returns a family of gauges, whose metrics differ in further labels.
inline prometheus::Family<prometheus::Gauge>& MakeGaugeFamily(
    prometheus::Registry& registry, const std::string& name, const std::string& help,
    const prometheus::Labels& labels = {}) {
  return prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(registry);
}

// Return a single metric of a family with this name.
inline prometheus::Counter& MakeCounter(prometheus::Registry& registry, const std::string& name,
                                        const std::string& help,
                                        const prometheus::Labels& labels = {}) {
  return MakeCounterFamily(registry, name, help).Add(labels);
}

inline prometheus::Gauge& MakeGauge(prometheus::Registry& registry, const std::string& name,
                                    const std::string& help,
                                    const prometheus::Labels& labels = {}) {
  return MakeGaugeFamily(registry, name, help).Add(labels);
}

// Returns a histogram; `bounds` are the upper ends of all buckets except the last, in ascending
// order.
inline prometheus::Histogram& MakeHistogram(prometheus::Registry& registry, const std::string& name,
                                            const std::string& help,
                                            const prometheus::Histogram::BucketBoundaries& bounds,
                                            const prometheus::Labels& labels = {}) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, bounds);
}

// Raises a counter to a sum that is kept elsewhere; a lower sum changes nothing. One thread for
// each counter.
inline void RaiseCounter(prometheus::Counter& counter, double sum) {
  const double more = sum - counter.Value();
  if (more > 0) counter.Increment(more);
}

// Raises counters by place and reason to the numbers of `table`. The usual losses up to `last`
// exist from the first call on, so that alerts see the first loss as an increase.
inline void RaiseLosses(prometheus::Family<prometheus::Counter>& counters, const LossTable& table,
                        LossPlace last) {
  table.ForEach(last, [&counters](LossPlace place, LossReason reason, uint64_t events) {
    RaiseCounter(counters.Add({{"place", std::string(ToString(place))},
                               {"reason", std::string(ToString(reason))}}),
                 static_cast<double>(events));
  });
}

// A gauge that exists while its value is known. One thread.
struct OptionalGauge {
  prometheus::Family<prometheus::Gauge>& family;
  // Owned by the family.
  prometheus::Gauge* gauge = nullptr;  // while it is known

  void Set(std::optional<double> value) {
    if (value) {
      if (gauge == nullptr) gauge = &family.Add({});
      gauge->Set(*value);
    } else if (gauge != nullptr) {
      family.Remove(gauge);
      gauge = nullptr;
    }
  }
  // Sets a time, which the gauge shows in seconds.
  void SetNs(std::optional<uint64_t> ns) {
    Set(ns ? std::optional(static_cast<double>(*ns) * 1e-9) : std::nullopt);
  }
};

// A gauge for each value of one label, a text or a number, which exists while its value is known.
// One thread.
template <typename Key>
struct GaugesByLabel {
  prometheus::Family<prometheus::Gauge>& family;
  const char* label;
  // The existing gauges, owned by the family.
  std::map<Key, prometheus::Gauge*> gauges;

  // Sets the gauges to `values` times `scale`, and removes those of other keys.
  template <typename Value>
  void Set(const std::map<Key, Value>& values, double scale = 1) {
    std::erase_if(gauges, [&](const auto& gauge) {
      if (values.contains(gauge.first)) return false;
      family.Remove(gauge.second);
      return true;
    });
    for (const auto& [key, value] : values) {
      prometheus::Gauge*& gauge = gauges[key];
      if (gauge == nullptr) gauge = &family.Add({{label, Text(key)}});
      gauge->Set(static_cast<double>(value) * scale);
    }
  }

 private:
  static std::string Text(const std::string& key) { return key; }
  static std::string Text(uint32_t key) { return std::to_string(key); }
};

}  // namespace neurontrace
