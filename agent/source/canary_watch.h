// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trace/ids.h"

namespace neurontrace {

// When the last canary of each live stream was sent that the aggregator has acknowledged: what says
// that data flows, all the way, also while no events come. On the agent's sequence; times are of
// the monotonic clock.
class CanaryWatch {
 public:
  // One live stream; it is told to the watch from its first moment on and to its end.
  using Entry = uint64_t;

  // Until the first canary is acknowledged the stream's age counts from `now_ns`. `stream` outlives
  // the entry.
  Entry Begin(const StreamIdentity& stream, uint64_t now_ns);
  void Acknowledged(Entry entry, uint64_t sent_ns, uint64_t now_ns);
  void End(Entry entry);

  struct Oldest {
    uint64_t age_ns = 0;
    const StreamIdentity* stream = nullptr;
    bool any = false;  // a canary of it was acknowledged
  };
  // The stream that has waited longest; nothing without live streams.
  std::optional<Oldest> oldest(uint64_t now_ns) const;
  // The longest that the last canary of a live stream took; nothing before the first.
  std::optional<uint64_t> round_trip_ns() const;

 private:
  struct State {
    const StreamIdentity* stream = nullptr;
    uint64_t since_ns = 0;
    std::optional<uint64_t> round_trip_ns;
  };
  std::map<Entry, State> states_;  // one for each open stream of the agent
  Entry last_ = 0;
};

// In words, why readiness fails: nothing while data flows.
std::optional<std::string> DescribeStall(const CanaryWatch& watch, uint64_t now_ns);

}  // namespace neurontrace
