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

bool TimelineFilter::SelectsStream(const StreamIdentity& stream) const {
  if (stream.kind == StreamKind::kHost && !host_samples) return false;
  if (!SelectedBy(instance_ids, stream.worker.instance_id)) return false;
  if (!SelectedBy(stream_kinds, stream.kind)) return false;
  if (neuron_cores.empty()) return true;
  return stream.kind == StreamKind::kNeuronCore && SelectedBy(neuron_cores, stream.nc_idx);
}

}  // namespace neurontrace
