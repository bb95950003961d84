// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace neurontrace {

// What fits and maps cost on this machine, in processor time of one thread.
struct Costs {
  uint32_t hosts = 0;          // each with an hour of evidence, at 8 probes a second
  uint64_t exchanges = 0;      // of all of them
  uint64_t fit_ns = 0;         // the final fit of them all
  uint64_t live_ns = 0;        // following them all while they come in
  size_t live_bytes = 0;       // of the state that this takes, a clock
  double conversion_ns = 1e9;  // of one event, in the quickest of all runs

  double FitNsAnExchange() const { return Mean(fit_ns, exchanges); }
  double LiveNsAnExchange() const { return Mean(live_ns, exchanges); }

 private:
  static double Mean(uint64_t sum, uint64_t count) {
    return static_cast<double>(sum) / static_cast<double>(count);
  }
};

Costs MeasureCosts(uint64_t seed, uint32_t hosts);

}  // namespace neurontrace
