// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/given_way.h"

#include <algorithm>
#include <utility>

namespace neurontrace {

void GivenWay::GiveWay(const CaptureId& other, uint64_t now_ns) {
  if (other == other_ && since_ns_) return;
  // From one to the next, without a trace of its own in between.
  if (since_ns_ && !other_.empty()) {
    if (now_ns > *since_ns_) due_.push_back(GaveWayFromTo(*since_ns_, now_ns, words_));
    since_ns_.reset();
  }
  other_ = other;
  words_ = GivenWayWords(other);
  told_ns_ = 0;
  if (!since_ns_) since_ns_ = now_ns;
}

Loss GivenWay::TraceStopped(uint64_t at_ns) {
  // The tap knows it better than who told it, unless this was said already.
  if (!since_ns_ || told_ns_ == 0 || at_ns < *since_ns_) since_ns_ = at_ns;
  return GaveWayFromTo(*since_ns_, std::max(told_ns_, *since_ns_), words_);
}

std::optional<Loss> GivenWay::TraceStarted(uint64_t at_ns) {
  told_ns_ = 0;
  const std::optional<uint64_t> since_ns = std::exchange(since_ns_, std::nullopt);
  if (!since_ns || at_ns <= *since_ns) return std::nullopt;
  return GaveWayFromTo(*since_ns, at_ns, words_);
}

std::vector<Loss> GivenWay::Take(uint64_t now_ns, bool is_last) {
  const uint64_t from_ns = std::max(since_ns_.value_or(0), told_ns_);
  if (since_ns_ && now_ns > from_ns && (is_last || now_ns - from_ns >= kTellNs)) {
    due_.push_back(GaveWayFromTo(*since_ns_, now_ns, words_));
    told_ns_ = now_ns;
  }
  return std::exchange(due_, {});
}

}  // namespace neurontrace
