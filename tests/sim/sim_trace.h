// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/clock.h"

namespace neurontrace {

// What happened in a run, as lines: hashed always, printed on request. Two runs of one seed have
// the same hash, or the simulation is not repeatable. Also where a broken invariant is said. One
// thread.
class SimTrace {
 public:
  SimTrace(const FakeClock& clock, bool verbose)
      : clock_(clock), start_ns_(clock.MonotonicNs()), verbose_(verbose) {}

  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    Add(fmt::format(format, std::forward<Args>(args)...));
  }
  // An invariant does not hold.
  template <typename... Args>
  void Violate(fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(fmt::format("at {:.3f} s: {}", Seconds(),
                                      fmt::format(format, std::forward<Args>(args)...)));
    Add("VIOLATION " + violations_.back());
  }

  double Seconds() const { return static_cast<double>(clock_.MonotonicNs() - start_ns_) * 1e-9; }
  uint64_t hash() const { return hash_; }
  uint64_t lines() const { return lines_; }
  bool verbose() const { return verbose_; }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void Add(const std::string& line) {
    const std::string timed = fmt::format("{:12.6f} {}", Seconds(), line);
    for (const char c : timed) {
      hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    }
    ++lines_;
    if (verbose_) std::puts(timed.c_str());
  }

  const FakeClock& clock_;
  const uint64_t start_ns_;
  const bool verbose_;
  uint64_t hash_ = 0xcbf29ce484222325u;
  uint64_t lines_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace neurontrace
