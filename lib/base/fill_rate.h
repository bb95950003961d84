// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Estimates how fast a buffer fills that is emptied now and then, how much waits in it, and how
// long until it is full, from what was taken out and when. Amounts may be of any unit; times are ns
// of one monotonic clock. A plain value. Header only and free of dependencies, because the tap,
// which may use nothing but the C library, includes it too.
//
// The rate is an exponentially weighted mean with one time constant for rising and another for
// falling samples.
class FillRate {
 public:
  static constexpr uint64_t kUnknownNs = UINT64_MAX;
  // Time constants. A rate that rises is believed sooner than one that falls: emptying too early
  // costs little, too late loses data.
  static constexpr double kRiseNs = 100e6;
  static constexpr double kFallNs = 2e9;
  // Samples over less time than this are treated as if they had taken it: one event in a
  // microsecond is no rate.
  static constexpr uint64_t kShortestNs = 1'000'000;

  // Starts over: empty at `now_ns`, rate unknown.
  void Begin(uint64_t now_ns) {
    empty_ns_ = now_ns;
    taken_ = 0;
    rate_ = -1;
  }

  // Records that `amount` was taken out at `now_ns`. `emptied`: nothing was left; otherwise an
  // unknown rest waits, and the sample is only a lower bound of the rate, so it can raise the
  // estimate and not lower it.
  void Took(uint64_t now_ns, uint64_t amount, bool emptied) {
    taken_ += amount;
    const double elapsed_ns = ElapsedNs(now_ns);
    const double sample = static_cast<double>(taken_) * 1e9 / elapsed_ns;
    if (rate_ < 0 || (!emptied && sample > rate_)) {
      rate_ = sample;
    } else if (emptied) {
      const double memory_ns = sample > rate_ ? kRiseNs : kFallNs;
      rate_ += (sample - rate_) * elapsed_ns / (elapsed_ns + memory_ns);
    }
    if (!emptied) return;
    if (now_ns > empty_ns_) empty_ns_ = now_ns;
    taken_ = 0;
  }

  // Returns whether anything was taken since Begin, so that there is a rate.
  bool known() const { return rate_ >= 0; }
  double per_second() const { return rate_ < 0 ? 0 : rate_; }

  // Returns the amount that, by the estimated rate, has arrived since the buffer was last empty and
  // was not taken.
  double Waiting(uint64_t now_ns) const {
    if (now_ns <= empty_ns_) return 0;
    const double came = per_second() * static_cast<double>(now_ns - empty_ns_) / 1e9;
    const double rest = came - static_cast<double>(taken_);
    return rest > 0 ? rest : 0;
  }

  // Returns the time until `capacity` is reached if nothing is taken from now on: 0 if it should be
  // reached already, kUnknownNs while no rate is known, at most `longest_ns` otherwise.
  uint64_t NsToFull(uint64_t now_ns, uint64_t capacity, uint64_t longest_ns) const {
    if (!known()) return kUnknownNs;
    const double room = static_cast<double>(capacity) - Waiting(now_ns);
    if (room <= 0) return 0;
    if (rate_ * static_cast<double>(longest_ns) <= room * 1e9) return longest_ns;
    return static_cast<uint64_t>(room * 1e9 / rate_);
  }

 private:
  // Returns the time since the buffer was last empty, at least kShortestNs.
  double ElapsedNs(uint64_t now_ns) const {
    if (now_ns < empty_ns_ + kShortestNs) return static_cast<double>(kShortestNs);
    return static_cast<double>(now_ns - empty_ns_);
  }

  uint64_t empty_ns_ = 0;
  uint64_t taken_ = 0;  // since then
  // Per second; negative: unknown.
  double rate_ = -1;
};

}  // namespace neurontrace
