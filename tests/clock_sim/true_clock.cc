// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/true_clock.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace neurontrace {
namespace {

// The frequency at the begin of each second, jumps left out.
std::vector<double> SmoothRates(const ClockPlan& plan, size_t seconds, Dice& dice) {
  std::vector<double> rates(seconds + 1);
  double walk_ppm = 0;
  for (size_t second = 0; second <= seconds; ++second) {
    const double wave = plan.wave_ppm * std::sin(plan.wave_phase + 2.0 * std::numbers::pi *
                                                                       static_cast<double>(second) /
                                                                       plan.wave_period_s);
    rates[second] = (plan.frequency_ppm + wave + walk_ppm) * 1e-6;
    walk_ppm += dice.Normal(plan.walk_ppm_per_root_s);
  }
  return rates;
}

}  // namespace

TrueClock::TrueClock(const ClockPlan& plan, int64_t duration_ns, Dice dice) {
  const size_t seconds = static_cast<size_t>(duration_ns / kSecond) + 2;
  const std::vector<double> rates = SmoothRates(plan, seconds, dice);
  pieces_.reserve(seconds + 3 * plan.jumps.size());
  piece_of_second_.reserve(seconds);
  pieces_.push_back({.begin_ns = 0,
                     .reading_ns = plan.origin_ns,
                     .fraction_ns = 0,
                     .rate = rates[0],
                     .rate_slope = (rates[1] - rates[0]) / kSecond});
  double stepped = 0;  // what jumps added to the rate
  auto jump = plan.jumps.begin();
  int64_t resumes_ns = 0;  // after the last stop
  for (size_t second = 0; second < seconds; ++second) {
    const int64_t begin_ns = static_cast<int64_t>(second) * kSecond;
    const double slope = (rates[second + 1] - rates[second]) / kSecond;
    const auto rate_at = [&](int64_t true_ns) {
      return rates[second] + slope * static_cast<double>(true_ns - begin_ns) + stepped;
    };
    if (second > 0 && begin_ns >= resumes_ns) Append(begin_ns, 0, rate_at(begin_ns), slope);
    piece_of_second_.push_back(static_cast<uint32_t>(pieces_.size() - 1));
    // A stop that began in an earlier second ends in this one.
    if (resumes_ns > begin_ns && resumes_ns < begin_ns + kSecond) {
      Append(resumes_ns, 0, rate_at(resumes_ns), slope);
    }
    for (; jump != plan.jumps.end() && jump->at_ns < begin_ns + kSecond; ++jump) {
      stepped += jump->rate_step_ppm * 1e-6;
      if (jump->step_ns >= 0) {
        Append(jump->at_ns, static_cast<uint64_t>(jump->step_ns), rate_at(jump->at_ns), slope);
        continue;
      }
      Append(jump->at_ns, 0, -1.0, 0);
      resumes_ns = jump->at_ns - jump->step_ns;
      if (resumes_ns < begin_ns + kSecond) Append(resumes_ns, 0, rate_at(resumes_ns), slope);
    }
  }
}

void TrueClock::Append(int64_t begin_ns, uint64_t step_ns, double rate, double rate_slope) {
  const Piece& last = pieces_.back();
  const double elapsed = static_cast<double>(begin_ns - last.begin_ns);
  const double deviation =
      last.fraction_ns + elapsed * (last.rate + last.rate_slope * elapsed / 2.0);
  const double whole = std::floor(deviation);
  const uint64_t reading = last.reading_ns + static_cast<uint64_t>(begin_ns - last.begin_ns) +
                           static_cast<uint64_t>(static_cast<int64_t>(whole));
  pieces_.push_back({.begin_ns = begin_ns,
                     .reading_ns = reading + step_ns,
                     .fraction_ns = deviation - whole,
                     .rate = rate,
                     .rate_slope = rate_slope});
}

const TrueClock::Piece& TrueClock::PieceAt(int64_t true_ns) const {
  const size_t second = static_cast<size_t>(std::max<int64_t>(true_ns, 0) / kSecond);
  size_t piece = piece_of_second_[std::min(second, piece_of_second_.size() - 1)];
  while (piece + 1 < pieces_.size() && pieces_[piece + 1].begin_ns <= true_ns) ++piece;
  return pieces_[piece];
}

uint64_t TrueClock::ReadIn(const Piece& piece, int64_t true_ns) {
  const int64_t elapsed_ns = true_ns - piece.begin_ns;
  const double elapsed = static_cast<double>(elapsed_ns);
  const double deviation =
      piece.fraction_ns + elapsed * (piece.rate + piece.rate_slope * elapsed / 2.0);
  return piece.reading_ns +
         static_cast<uint64_t>(elapsed_ns + static_cast<int64_t>(std::floor(deviation)));
}

int64_t TrueClock::TimeOf(uint64_t reading_ns) const {
  auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), reading_ns,
      [](uint64_t reading, const Piece& piece) { return reading < piece.reading_ns; });
  const Piece& piece = after == pieces_.begin() ? pieces_.front() : *(after - 1);
  const double target =
      static_cast<double>(static_cast<int64_t>(reading_ns - piece.reading_ns)) - piece.fraction_ns;
  double elapsed = target;
  if (piece.rate > -0.5) {
    for (int round = 0; round < 4; ++round) {
      elapsed = target / (1.0 + piece.rate + piece.rate_slope * elapsed / 2.0);
    }
  }
  int64_t time_ns = piece.begin_ns + static_cast<int64_t>(std::ceil(elapsed));
  if (after != pieces_.end()) time_ns = std::min(time_ns, after->begin_ns);
  return time_ns;
}

int64_t TrueClock::WhenRunning(int64_t true_ns) const {
  const Piece& piece = PieceAt(true_ns);
  if (piece.rate > -0.5) return true_ns;
  const Piece* next = &piece + 1;
  return next == pieces_.data() + pieces_.size() ? true_ns : next->begin_ns;
}

double TrueClock::RatePpm(int64_t true_ns) const {
  const Piece& piece = PieceAt(true_ns);
  return (piece.rate + piece.rate_slope * static_cast<double>(true_ns - piece.begin_ns)) * 1e6;
}

}  // namespace neurontrace
