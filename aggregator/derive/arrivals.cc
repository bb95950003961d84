// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/arrivals.h"

#include <algorithm>
#include <utility>

namespace neurontrace {

// Each member waited from its own arrival to the last one.
void Arrivals::Add(const Collective& collective) {
  // If its members cannot have met, nobody waited for the last one.
  if (collective.members.size() < 2 || collective.is_disjoint()) return;
  for (const CollectiveMember& member : collective.members) {
    ArrivalRow& row = rows_[member.stream];
    ++row.collectives;
    row.waits.Add(collective.last_arrival_ns() - member.start_ns);
  }
  ArrivalRow& last = rows_[collective.last().stream];
  ++last.last;
  if (!collective.is_last_known()) return;
  ++last.last_known;
  last.lateness.Add(collective.lateness_ns());
  const auto bound_ns = collective.lateness_bound_ns();
  if (!bound_ns) ++last.lateness_unbounded;
  last.lateness_bound_max_ns = std::max(last.lateness_bound_max_ns, bound_ns.value_or(0));
}

std::vector<ArrivalRow> Arrivals::Finish(std::span<const uint64_t> absences) {
  // Numbers the rows, which is only needed in the result.
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].stream = static_cast<uint32_t>(i);
    if (i < absences.size()) rows_[i].absent = absences[i];
  }
  std::erase_if(rows_, [](const ArrivalRow& r) { return r.collectives == 0 && r.absent == 0; });
  // By the time that the others lost, rather than by how often the core was last.
  std::stable_sort(rows_.begin(), rows_.end(), [](const ArrivalRow& a, const ArrivalRow& b) {
    return a.lateness.sum_ns() > b.lateness.sum_ns();
  });
  return std::move(rows_);
}

}  // namespace neurontrace
