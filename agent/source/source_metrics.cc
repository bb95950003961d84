// SPDX-License-Identifier: Apache-2.0
#include "agent/source/source_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Returns the time that has passed, in ns; 0 if `then_ns` is later.
uint64_t Since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

}  // namespace

CanaryWatch::Entry CanaryWatch::Begin(const StreamIdentity& stream, uint64_t now_ns) {
  states_[++last_] = {.stream = &stream, .since_ns = now_ns, .round_trip_ns = {}};
  return last_;
}

void CanaryWatch::Acknowledged(Entry entry, uint64_t sent_ns, uint64_t now_ns) {
  const auto state = states_.find(entry);
  if (state == states_.end()) return;
  // Acknowledgements may arrive out of order; the newest canary counts.
  state->second.since_ns = std::max(state->second.since_ns, sent_ns);
  state->second.round_trip_ns = Since(sent_ns, now_ns);
}

void CanaryWatch::End(Entry entry) { states_.erase(entry); }

std::optional<CanaryWatch::Oldest> CanaryWatch::oldest(uint64_t now_ns) const {
  const auto oldest = std::min_element(
      states_.begin(), states_.end(),
      [](const auto& a, const auto& b) { return a.second.since_ns < b.second.since_ns; });
  if (oldest == states_.end()) return std::nullopt;
  const State& state = oldest->second;
  return Oldest{Since(state.since_ns, now_ns), state.stream, state.round_trip_ns.has_value()};
}

std::optional<uint64_t> CanaryWatch::round_trip_ns() const {
  std::optional<uint64_t> longest;
  for (const auto& [entry, state] : states_) {
    if (state.round_trip_ns) longest = std::max(longest.value_or(0), *state.round_trip_ns);
  }
  return longest;
}

std::optional<std::string> DescribeStall(const CanaryWatch& watch, uint64_t now_ns) {
  const std::optional<CanaryWatch::Oldest> oldest = watch.oldest(now_ns);
  // An agent without streams has nothing that could stall.
  if (!oldest || oldest->age_ns <= limits::kCanaryAgeMaxNs) return std::nullopt;
  return fmt::format("stream {}: {} has been acknowledged for {} s", ToString(*oldest->stream),
                     oldest->any ? "no further canary" : "no canary",
                     oldest->age_ns / kNsPerSecond);
}

}  // namespace neurontrace
