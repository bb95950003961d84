// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "aggregator/store/clock_record.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"

namespace neurontrace {

// Keeps an aggregator's SteadyClock over restarts, and reports when somebody sets the machine's
// clock. The time before a step is continued, also by later processes until the machine restarts,
// as long as captures are recorded whose stamps began in it; a process that starts without one
// takes over the new time, and from then on ForwardSince says how much later older stamps expire. A
// step while the machine is off cannot be noticed. One thread, but for ForwardSince.
class ClockSteps {
 public:
  // `boot` identifies the machine's start, as RawOrigin; empty: not known. All outlive this.
  ClockSteps(Store& store, SteadyClock& clock, std::string boot, prometheus::Registry& registry);

  // Before anything is stamped. `is_recording`: a capture of an earlier process has not ended.
  // Returns what a person should know; empty: nothing.
  std::string Begin(bool is_recording);
  // About once a second: whether somebody has set the clock since the last call, as text; nothing
  // where not.
  std::optional<std::string> Check();
  // How much later than by its stamp alone something of `stamp_ns` is to expire. Any thread, after
  // Begin.
  uint64_t ForwardSince(uint64_t stamp_ns) const { return record_.ForwardSince(stamp_ns); }

 private:
  void Save();

  Store& store_;
  SteadyClock& clock_;
  const std::string boot_;
  prometheus::Gauge& step_seconds_;
  prometheus::Counter& steps_;
  ClockRecord record_;  // as it is stored; its steps do not change after Begin
  int64_t told_step_ns_ = 0;
  uint64_t told_steps_ = 0;
  bool was_saved_ = true;  // the last time; logged once
};

}  // namespace neurontrace
