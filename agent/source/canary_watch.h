// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "lib/trace/ids.h"

namespace neurontrace {

// Knows when the last acknowledged canary of each live stream was sent. A canary is an empty chunk
// that takes the whole way of the data, so this shows that data flows even while no events come. On
// the agent's sequence; times are of CLOCK_MONOTONIC, in ns.
class CanaryWatch {
 public:
  // Handle of one live stream, from its first moment to its end. Numbers are never reused.
  using Entry = uint64_t;

  // Starts to watch a stream. Until its first canary is acknowledged its age counts from `now_ns`.
  // `stream` outlives the entry.
  Entry Begin(const StreamIdentity& stream, uint64_t now_ns);
  // The aggregator stored the canary that was sent at `sent_ns`. Ignored for an entry that has
  // ended.
  void Acknowledged(Entry entry, uint64_t sent_ns, uint64_t now_ns);
  // The stream has ended or its capture was forgotten; it cannot stall any more.
  void End(Entry entry);

  struct Oldest {
    // Since the last acknowledged canary was sent, or since the stream began if there was none.
    uint64_t age_ns = 0;
    const StreamIdentity* stream = nullptr;
    bool any = false;  // a canary of it was acknowledged
  };
  // Returns the stream that has waited longest; nothing without live streams. The cost is linear in
  // the live streams of the agent.
  std::optional<Oldest> oldest(uint64_t now_ns) const;
  // Returns the longest time that the last canary of a live stream took; nothing before the first.
  std::optional<uint64_t> round_trip_ns() const;

 private:
  // `since_ns` is when the last acknowledged canary was sent, or when the stream began.
  struct State {
    const StreamIdentity* stream = nullptr;
    uint64_t since_ns = 0;
    std::optional<uint64_t> round_trip_ns;
  };
  // An ordered map, so that of equal ages the oldest stream is named.
  std::map<Entry, State> states_;  // one for each open stream of the agent
  Entry last_ = 0;
};

}  // namespace neurontrace
