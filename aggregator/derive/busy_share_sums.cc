// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/busy_share_sums.h"

#include <algorithm>
#include <iterator>

namespace neurontrace {

BusyShareSums::BusyShareSums(size_t streams, uint64_t window_start_ns, uint64_t window_end_ns)
    : window_start_ns_(window_start_ns),
      window_end_ns_(window_end_ns),
      device_(streams),
      runtime_(streams),
      own_(streams) {}

void BusyShareSums::Cover::Add(Interval interval) {
  const uint64_t from_ns = std::max(interval.start_ns, until_ns);
  if (interval.end_ns <= from_ns) return;
  ns += interval.end_ns - from_ns;
  until_ns = interval.end_ns;
}

BusyShareSums::Interval BusyShareSums::CutToWindow(uint64_t start_ns, uint64_t end_ns) const {
  return {std::max(start_ns, window_start_ns_), std::min(end_ns, window_end_ns_)};
}

void BusyShareSums::AddRun(uint32_t stream, uint64_t start_ns, uint64_t end_ns) {
  own_[stream].either.Add(CutToWindow(start_ns, end_ns));
}

void BusyShareSums::AddMeeting(uint32_t stream, uint64_t start_ns, uint64_t end_ns) {
  const Interval interval = CutToWindow(start_ns, end_ns);
  own_[stream].either.Add(interval);
  own_[stream].meetings.Add(interval);
}

// An execution may reach out of the window or come after later ones (see kIntervalsMax).
void BusyShareSums::Add(const Execution& execution) {
  Sum& sum = (execution.source == ExecutionSource::kDevice ? device_ : runtime_)[execution.stream];
  sum.share.stream = execution.stream;
  sum.share.source = execution.source;
  ++sum.share.executions;
  // It is not known how much of the time it ran.
  if (execution.is_open) {
    ++sum.share.open;
    return;
  }
  Interval interval = CutToWindow(execution.start_ns, execution.end_ns);
  if (interval.start_ns >= interval.end_ns) return;
  // What lies before cannot be compared with the intervals there any more.
  if (interval.start_ns < sum.summed_until_ns) {
    ++sum.share.joined_late;
    interval.start_ns = std::min(sum.summed_until_ns, interval.end_ns);
  }
  Hold(interval, sum);
  while (sum.held.size() > kIntervalsMax) SumFirst(sum);
}

// Merges the interval into the held ones. Most executions come nearly in the order of their starts,
// so the search begins at the end.
void BusyShareSums::Hold(Interval interval, Sum& sum) {
  auto& held = sum.held;
  auto end = held.end();
  while (end != held.begin() && std::prev(end)->start_ns > interval.end_ns) --end;
  auto begin = end;
  while (begin != held.begin() && std::prev(begin)->end_ns >= interval.start_ns) {
    --begin;
    interval.start_ns = std::min(interval.start_ns, begin->start_ns);
    interval.end_ns = std::max(interval.end_ns, begin->end_ns);
  }
  if (begin == end) {
    held.insert(begin, interval);
    return;
  }
  *begin = interval;
  held.erase(std::next(begin), end);
}

// Nothing may be merged with it afterwards; summed_until_ns remembers where it ended.
void BusyShareSums::SumFirst(Sum& sum) {
  const Interval first = sum.held.front();
  sum.held.erase(sum.held.begin());
  sum.share.busy_ns += first.end_ns - first.start_ns;
  sum.summed_until_ns = first.end_ns;
}

// The host's calls count only if the device reported nothing.
std::vector<BusyShare> BusyShareSums::Finish() {
  std::vector<BusyShare> shares;
  for (size_t i = 0; i < device_.size(); ++i) {
    Sum& sum = device_[i].share.executions > 0 ? device_[i] : runtime_[i];
    if (sum.share.executions == 0) continue;
    while (!sum.held.empty()) SumFirst(sum);
    if (sum.share.source == ExecutionSource::kDevice) {
      sum.share.own_ns = own_[i].either.ns - own_[i].meetings.ns;
    }
    shares.push_back(sum.share);
  }
  return shares;
}

}  // namespace neurontrace
