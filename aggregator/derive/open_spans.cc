// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/open_spans.h"

namespace neurontrace {

// Goes from the innermost span outwards, because spans of a thread nest.
OpenSpans::Place OpenSpans::Find(const Thread& thread, uint64_t start_ns, uint64_t end_ns) {
  Place place;
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return place;
  std::vector<Span>& spans = found->second;
  size_t at = spans.size();
  for (size_t looked = 0; at > 0 && looked < kSearchMax; ++looked) {
    const Span& span = spans[--at];
    if (span.end_ns <= start_ns) {
      // Erasing below the innermost span would move it, and the pointer with it.
      if (place.innermost != nullptr) continue;
      spans.erase(spans.begin() + static_cast<ptrdiff_t>(at));
      --open_;
      // The span under way ends before the one in question: it does not enclose it.
    } else if (span.end_ns < end_ns) {
      place.crosses = place.crosses || place.innermost == nullptr;
    } else {
      if (place.innermost == nullptr) place.innermost = &span;
      // A call: the operation that made it is further out.
      if (span.chain == 0) continue;
      place.operation = &span;
      break;
    }
  }
  return place;
}

// Drops ended spans first, then applies the limits.
void OpenSpans::Add(const Thread& thread, uint64_t start_ns, const Span& span) {
  if (open_ + threads_.size() >= kOpenMax) Sweep(start_ns);
  std::vector<Span>& spans = threads_[thread];
  // Nothing that follows can lie in a span that has ended.
  while (!spans.empty() && spans.back().end_ns <= start_ns) {
    spans.pop_back();
    --open_;
  }
  if (spans.size() >= kDepthMax) {
    const size_t before = spans.size();
    std::erase_if(spans, [start_ns](const Span& old) { return old.end_ns <= start_ns; });
    if (spans.size() > kDepthMax / 2) {
      const size_t outer = spans.size() - kDepthMax / 2;
      spans.erase(spans.begin(), spans.begin() + static_cast<ptrdiff_t>(outer));
      forgotten_ += outer;
    }
    open_ -= before - spans.size();
  }
  spans.push_back(span);
  spans.back().start_ns = start_ns;
  ++open_;
}

// Counts what is left while it removes.
void OpenSpans::Sweep(uint64_t now_ns) {
  open_ = 0;
  absl::erase_if(threads_, [&](auto& entry) {
    std::erase_if(entry.second, [now_ns](const Span& span) { return span.end_ns <= now_ns; });
    open_ += entry.second.size();
    return entry.second.empty();
  });
  if (open_ + threads_.size() <= kOpenMax / 2) return;
  // Everything, because removing the oldest would need an order over all threads.
  forgotten_ += open_;
  open_ = 0;
  threads_.clear();
}

}  // namespace neurontrace
