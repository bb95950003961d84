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
#include "lib/base/steady_clock.h"

namespace neurontrace {

// Keeps an aggregator's SteadyClock over restarts, and reports when somebody sets the machine's
// clock.
//
// The time before a step continues, also in later processes of the same boot, while captures are
// recorded whose timestamps began in it. A process that starts without such a capture adopts the
// new time; ForwardSince then returns how much later older timestamps expire. A step while the
// machine is off cannot be noticed. One thread, except for ForwardSince. The aggregator owns it,
// calls Begin at its start, and calls Check in its maintenance.
class ClockSteps {
 public:
  // `boot` identifies the machine's boot, as RawOrigin does; empty: unknown. All must outlive this.
  ClockSteps(Store& store, SteadyClock& clock, std::string boot, prometheus::Registry& registry);

  // Called before anything is stamped. `is_recording`: a capture of an earlier process has not
  // ended. Returns a message for the log; empty: none. An unreadable record is logged and counts as
  // none.
  std::string Begin(bool is_recording);
  // Called about once a second. Returns a message if the clock was set since the last call. Also
  // stores the offset when it has changed by a second or more, or the last write failed; failures
  // in a row are logged once.
  std::optional<std::string> Check();
  // Returns by how many ns the expiry of something with this timestamp is delayed. Any thread,
  // after Begin.
  uint64_t ForwardSince(uint64_t stamp_ns) const { return record_.ForwardSince(stamp_ns); }

 private:
  // Writes the offset for a later process of this boot.
  void Save();

  Store& store_;
  SteadyClock& clock_;
  const std::string boot_;
  prometheus::Gauge& step_seconds_;
  prometheus::Counter& steps_;
  ClockRecord record_;  // as last written; its steps are constant after Begin
  // What the last message reported, so that each step is reported once.
  int64_t reported_step_ns_ = 0;
  uint64_t reported_steps_ = 0;
  bool was_saved_ = true;  // whether the last write succeeded
};

}  // namespace neurontrace
