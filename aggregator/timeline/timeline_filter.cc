// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/timeline_filter.h"

#include <fmt/format.h>

#include <algorithm>

namespace neurontrace {
namespace {

// The warning is one line: further streams are counted.
constexpr size_t kOwnTimesNamedMax = 8;

// An empty selection selects everything.
template <typename T>
bool SelectedBy(const std::vector<T>& selection, const T& value) {
  return selection.empty() ||
         std::find(selection.begin(), selection.end(), value) != selection.end();
}

}  // namespace

bool TimelineFilter::SelectsStream(const StreamDescription& stream) const {
  const StreamIdentity& identity = stream.identity;
  // Tested first: host samples are never events of a worker's timeline, whatever else is selected.
  if (identity.kind == StreamKind::kHost && !host_samples) return false;
  if (stream.has_own_time() && has_window() && !own_time_begin_ns) return false;
  if (!SelectedBy(instance_ids, identity.worker.instance_id)) return false;
  if (!job.empty() && stream.job != job) return false;
  if (!SelectedBy(stream_kinds, identity.kind)) return false;
  if (!streams.empty() && std::ranges::none_of(streams, [&stream](const StreamRange& range) {
        return range.contains(stream.number);
      })) {
    return false;
  }
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

ClockMap OwnTimeClock(const StreamDescription& stream, uint64_t begin_ns) {
  if (stream.events == 0) return {};
  return ClockMap::FromPieces(
             {{.raw_begin_ns = stream.first_timestamp_ns, .reference_begin_ns = begin_ns}})
      .value_or(ClockMap());
}

std::optional<std::string> OwnTimeWarning(std::span<const StreamDescription> streams,
                                          TimelineFilter filter, bool is_recorded) {
  const bool is_excluded = filter.has_window() && !filter.own_time_begin_ns;
  // With the window SelectsStream refuses every such stream, so that none would be named.
  filter.window_start_ns = 0;
  filter.window_end_ns = UINT64_MAX;
  std::string names;
  size_t count = 0;
  for (const StreamDescription& stream : streams) {
    if (!stream.has_own_time() || stream.events == 0 || !filter.SelectsStream(stream)) continue;
    if (++count > kOwnTimesNamedMax) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", ToString(stream.identity));
  }
  if (count == 0) return std::nullopt;
  if (count > kOwnTimesNamedMax) names += fmt::format(" and {} more", count - kOwnTimesNamedMax);
  return fmt::format(
      "{} framework {} from an unknown moment ({}): {}", count,
      count == 1 ? "file has times that count" : "files have times that count", names,
      is_excluded ? "a time window excludes their events"
      : is_recorded
          ? "they keep these times and are not aligned with anything else"
          : "they are shown from the start of the capture, not aligned with anything else");
}

bool TimelineFilter::CanSelectFrom(const ChunkEntry& chunk) const {
  if (!chunk.event_types || event_types.selects_all()) return true;
  return std::any_of(chunk.event_types->begin(), chunk.event_types->end(),
                     [this](const std::string& type) { return event_types.Selects(type); });
}

}  // namespace neurontrace
