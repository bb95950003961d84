// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/timeline_filter.h"

#include <algorithm>

namespace neurontrace {
namespace {

template <typename T>
bool SelectedBy(const std::vector<T>& selection, const T& value) {
  return selection.empty() ||
         std::find(selection.begin(), selection.end(), value) != selection.end();
}

}  // namespace

bool TimelineFilter::SelectsStream(const StreamDescription& stream) const {
  const StreamIdentity& identity = stream.identity;
  if (identity.kind == StreamKind::kHost && !host_samples) return false;
  if (!SelectedBy(instance_ids, identity.worker.instance_id)) return false;
  if (!SelectedBy(stream_kinds, identity.kind)) return false;
  if (!neuron_cores.empty() &&
      (identity.kind != StreamKind::kNeuronCore || !SelectedBy(neuron_cores, identity.nc_idx))) {
    return false;
  }
  if (worker_gids.empty()) return true;
  const RankEvidence* best = BestEvidence(stream.evidence);
  return best != nullptr &&
         std::any_of(worker_gids.begin(), worker_gids.end(),
                     [best](const GidRange& range) { return range.contains(best->worker_gid); });
}

bool TimelineFilter::MaySelectOf(const ChunkEntry& chunk) const {
  if (!chunk.event_types || event_types.selects_all()) return true;
  return std::any_of(chunk.event_types->begin(), chunk.event_types->end(),
                     [this](const std::string& type) { return event_types.Selects(type); });
}

}  // namespace neurontrace
