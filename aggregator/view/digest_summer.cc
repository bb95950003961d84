// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_summer.h"

#include <algorithm>
#include <utility>

#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

void DigestSummer::Inherit(uint32_t row, uint32_t name, uint64_t stop_ns) {
  if (row >= open_.size()) open_.resize(row + 1);
  open_[row].push_back({stop_ns, name});
}

DigestNameSums& DigestSummer::NameAt(uint32_t name) {
  if (name >= names_.size()) {
    names_.resize(name + 1);
    begun_.resize(name + 1);
  }
  return names_[name];
}

void DigestSummer::Cover(DigestMeasure measure, uint64_t begin_ns, uint64_t end_ns) {
  uint64_t& until_ns = covered_ns_[static_cast<size_t>(measure)];
  const uint64_t at_ns = std::max(begin_ns, until_ns);
  end_ns = std::min(end_ns, kTimeMaxNs);
  if (at_ns >= end_ns) return;
  until_ns = end_ns;
  DigestRunSum& sum = bins_[static_cast<size_t>(measure)];
  const uint64_t first = at_ns / bin_ns_;
  const uint64_t last = end_ns / bin_ns_;
  if (first == last) return sum.Add({first, 1, end_ns - at_ns});
  sum.Add({first, 1, (first + 1) * bin_ns_ - at_ns});
  if (last > first + 1) sum.Add({first + 1, last - first - 1, bin_ns_});
  sum.Add({last, 1, end_ns - last * bin_ns_});
}

// As NameSummary does with the single events.
void DigestSummer::CountSelf(const Event& event) {
  if (event.row >= open_.size()) open_.resize(event.row + 1);
  std::vector<OpenSpan>& open = open_[event.row];
  while (!open.empty() && open.back().end_ns <= event.start_ns) open.pop_back();
  NameAt(event.name).self_ns += static_cast<int64_t>(event.end_ns - event.start_ns);
  if (!open.empty()) {
    NameAt(open.back().name).self_ns -=
        static_cast<int64_t>(std::min(event.end_ns, open.back().end_ns) - event.start_ns);
  }
  if (open.size() < limits::kViewDepthMax) open.push_back({event.end_ns, event.name});
}

void DigestSummer::Add(const Event& event) {
  DigestNameSums& name = NameAt(event.name);
  begun_[event.name].Add({event.start_ns / (bin_ns_ * kDigestSlotBins), 1, 1});
  bins_[static_cast<size_t>(DigestMeasure::kBegun)].Add({event.start_ns / bin_ns_, 1, 1});
  if (!event.is_span) {
    ++name.instants;
    return;
  }
  if (event.is_cover) {
    Cover(event.is_hardware ? DigestMeasure::kHardware : DigestMeasure::kOther, event.start_ns,
          event.end_ns);
    if (event.is_wait) Cover(DigestMeasure::kWait, event.start_ns, event.end_ns);
  }
  if (!event.has_length) {
    ++name.without_length;
    return;
  }
  name.durations.Add(event.end_ns - event.start_ns);
  CountSelf(event);
}

DigestSums DigestSummer::Take(const std::vector<DigestName>& names) {
  DigestSumsJoiner joiner(bin_ns_);
  DigestSums sums;
  for (size_t i = 0; i < kDigestMeasures; ++i) sums.bins[i] = bins_[i].Take();
  for (size_t i = 0; i < names_.size(); ++i) {
    names_[i].name = names[i];
    names_[i].begun = begun_[i].Take();
    // Names of inherited spans alone matter, too: their own time shrinks.
    if (names_[i].events() > 0 || names_[i].self_ns != 0)
      sums.names.push_back(std::move(names_[i]));
  }
  joiner.Add(sums, bin_ns_);
  return joiner.Take();
}

}  // namespace neurontrace
