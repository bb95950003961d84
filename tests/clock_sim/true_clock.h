// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/clock_sim/dice.h"

namespace neurontrace {

// True time is nanoseconds since the begin of a run, int64_t.
inline constexpr int64_t kMicrosecond = 1'000;
inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;

// What harms a counter at a moment. step_ns > 0: it jumps ahead. step_ns < 0: it stands still for
// that long, and so does all that runs on its machine, since a counter never runs backwards.
struct ClockJump {
  int64_t at_ns = 0;
  int64_t step_ns = 0;
  double rate_step_ppm = 0;
};

struct ClockPlan {
  uint64_t origin_ns = 0;             // the reading at true time 0
  double frequency_ppm = 0;           // how much faster than true time
  double walk_ppm_per_root_s = 0.01;  // random walk of the frequency
  double wave_ppm = 0.2;              // temperature
  double wave_period_s = 400;
  double wave_phase = 0;
  std::vector<ClockJump> jumps;  // ascending, not within each other
};

// The truth about a counter: which reading it has at which true time, and back. Its rate is
// continuous and piecewise linear in time, second by second, but for the jumps. Constant after
// construction: any thread may read it.
class TrueClock {
 public:
  // From 0 to `duration_ns`; before and after that its rate is constant.
  TrueClock(const ClockPlan& plan, int64_t duration_ns, Dice dice);

  uint64_t Read(int64_t true_ns) const { return ReadIn(PieceAt(true_ns), true_ns); }
  // A time with this reading; of a reading that a jump left out, the time of the jump.
  int64_t TimeOf(uint64_t reading_ns) const;
  // `true_ns`, or the end of the stop that it lies in.
  int64_t WhenRunning(int64_t true_ns) const;
  double RatePpm(int64_t true_ns) const;

 private:
  struct Piece {
    int64_t begin_ns;     // true time
    uint64_t reading_ns;  // at begin_ns, and a fraction:
    double fraction_ns;
    double rate;        // less 1; -1: stands still
    double rate_slope;  // of the rate, per ns
  };
  const Piece& PieceAt(int64_t true_ns) const;
  static uint64_t ReadIn(const Piece& piece, int64_t true_ns);
  void Append(int64_t begin_ns, uint64_t step_ns, double rate, double rate_slope);

  std::vector<Piece> pieces_;
  std::vector<uint32_t> piece_of_second_;  // the first that begins in or holds at its begin
};

}  // namespace neurontrace
