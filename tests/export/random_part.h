// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "aggregator/timeline/timeline_filter.h"
#include "tests/export/hostile_capture.h"

namespace neurontrace {

// Part of a hostile capture: what is asked for, and what that means, determined without the code
// that selects.
struct RandomPart {
  static RandomPart Make(uint64_t seed, const HostileCapture::Shape& shape);

  TimelineFilter filter;
  std::string words;  // for who reads a failure
  bool has_window = false;

  bool Selects(const SeenEvent& event) const;
  bool Selects(const SeenSample& sample) const;
  // docs/formats/derived.md, "Windows": "of one that began earlier only a stop inside the window is
  // seen": such a span may be there, whole, or not.
  bool CanLack(const SeenEvent& event) const;

 private:
  bool SelectsPlace(const std::string& instance_id, const std::string& nc_idx) const;

  std::function<bool(const std::string& event_type)> selects_type_;
  bool has_frameworks_ = true;
  bool has_cores_ = true;
};

}  // namespace neurontrace
