// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace neurontrace {

// The clocks of a simulated instance: true time with an honest error. Everything that stands for
// that instance, its agent above all, has to read clocks of the same error: either by its own
// setting, or through tests/e2e/clocks/shifted_clock.cc, which computes with this. A plain value.
struct HostClock {
  // Somebody sets REALTIME by `by_ns`.
  struct Step {
    int64_t at_ns = 0;  // true time
    int64_t by_ns = 0;
  };
  // Somebody steers REALTIME, and MONOTONIC with it, towards where it belongs.
  struct Slew {
    int64_t begin_ns = 0;  // true time
    int64_t end_ns = 0;
    double ppm = 0;
    bool is_hidden = false;  // as adjtime(3) does it: adjtimex(2) says nothing of it
  };

  int64_t offset_ns = 0;  // of REALTIME
  double drift_ppm = 0;
  int64_t origin_ns = 0;      // true time from which drifts count
  int64_t raw_offset_ns = 0;  // of MONOTONIC_RAW, which nobody steers or sets
  double raw_drift_ppm = 0;
  std::vector<Step> steps;  // in order of time, as are the slews, which do not overlap
  std::vector<Slew> slews;

  // What CLOCK_REALTIME shows.
  int64_t Stamp(int64_t true_ns) const;
  // How much further than true time MONOTONIC, and REALTIME but for its steps, have gone.
  int64_t GainedNs(int64_t true_ns) const;
  // The same of MONOTONIC_RAW.
  int64_t RawGainedNs(int64_t true_ns) const;
  // By how much adjtimex(2) says that the kernel lets REALTIME run faster than raw, in ppm.
  double ShownPpm(int64_t true_ns) const;
  // When somebody sets REALTIME next; nullopt: never again.
  std::optional<int64_t> NextStepAfter(int64_t true_ns) const;

  // Of words divided by spaces: offset_ns=N drift_ppm=X origin_ns=N raw_offset_ns=N
  // raw_drift_ppm=X, and any number of step=AT:NS, slew=BEGIN:END:PPM and hidden_slew=BEGIN:END:PPM
  // in order of time. nullopt for anything else.
  static std::optional<HostClock> Parse(std::string_view text);
};

}  // namespace neurontrace
