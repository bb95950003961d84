// SPDX-License-Identifier: Apache-2.0
// How fast something fills that is emptied now and then, how much waits in it, and how long until
// it is full: told from what was taken out and when. A plain value; any unit. Header only and free
// of dependencies, because the tap, which may use nothing but the C library, includes it too.
#pragma once

#include <cstdint>

namespace neurontrace {

class FillRate {
 public:
  static constexpr uint64_t kUnknownNs = UINT64_MAX;
  // A rate that rises is believed sooner than one that falls: too much haste costs little.
  static constexpr double kRiseNs = 100e6;
  static constexpr double kFallNs = 2e9;
  // Samples over less than this say nothing about a rate.
  static constexpr uint64_t kShortestNs = 1'000'000;

  // Empty at `now_ns`; nothing is known of the rate.
  void Begin(uint64_t now_ns) {
    empty_ns_ = now_ns;
    taken_ = 0;
    rate_ = -1;
  }

  // `amount` was taken out by a look at `now_ns`. `emptied`: it left nothing behind; otherwise
  // an unknown rest waits, and the rate is at least what this looks like.
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

  bool known() const { return rate_ >= 0; }
  double per_second() const { return rate_ < 0 ? 0 : rate_; }

  // What came since it was last empty and was not taken, as the rate has it.
  double Waiting(uint64_t now_ns) const {
    if (now_ns <= empty_ns_) return 0;
    const double came = per_second() * static_cast<double>(now_ns - empty_ns_) / 1e9;
    const double rest = came - static_cast<double>(taken_);
    return rest > 0 ? rest : 0;
  }

  // Until `capacity` is reached if nothing is taken from now on: 0 if it should be by now,
  // kUnknownNs while no rate is known, at most `longest_ns` otherwise.
  uint64_t NsToFull(uint64_t now_ns, uint64_t capacity, uint64_t longest_ns) const {
    if (!known()) return kUnknownNs;
    const double room = static_cast<double>(capacity) - Waiting(now_ns);
    if (room <= 0) return 0;
    if (rate_ * static_cast<double>(longest_ns) <= room * 1e9) return longest_ns;
    return static_cast<uint64_t>(room * 1e9 / rate_);
  }

 private:
  double ElapsedNs(uint64_t now_ns) const {
    if (now_ns < empty_ns_ + kShortestNs) return static_cast<double>(kShortestNs);
    return static_cast<double>(now_ns - empty_ns_);
  }

  uint64_t empty_ns_ = 0;
  uint64_t taken_ = 0;  // since then
  double rate_ = -1;    // a second; negative: unknown
};

}  // namespace neurontrace
