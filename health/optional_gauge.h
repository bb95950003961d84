// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>

#include <cstdint>
#include <optional>

namespace neurontrace {

// A gauge that is there while its value is known. Owned by its registry; one thread.
struct OptionalGauge {
  prometheus::Family<prometheus::Gauge>& family;
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
  // In seconds.
  void SetNs(std::optional<uint64_t> ns) {
    Set(ns ? std::optional(static_cast<double>(*ns) * 1e-9) : std::nullopt);
  }
};

}  // namespace neurontrace
