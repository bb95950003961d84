// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/side_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "aggregator/derive/shape_fields.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The only events of the runtime that report what is in use of a device's memory.
constexpr std::string_view kMemoryEventTypes[] = {"nrt_dma_mem_alloc", "nrt_dma_mem_dealloc"};

}  // namespace

TimelineOptions SideReader::Options() const {
  TimelineOptions options;
  options.filter = request_.filter;
  if (request_.clocks != nullptr && !request_.raw_clocks) options.clocks = &request_.clocks->maps;
  return options;
}

// Each reading that passes a damaged chunk meets it again: only what exceeds `counted` is new.
void SideReader::Record(const TimelineReader& reader, uint64_t& counted, ExportSummary& summary) {
  const uint64_t found = reader.counts().unreadable_chunks;
  if (found > counted) summary.counts.unreadable_chunks += found - std::exchange(counted, found);
  for (const std::string& warning : reader.warnings()) {
    auto& known = summary.warnings;
    if (std::find(known.begin(), known.end(), warning) == known.end()) known.push_back(warning);
  }
}

absl::Status SideReader::ReadHostSamples(std::string_view event_type, const HostSampleSink& take,
                                         ExportSummary& summary) {
  // Not an error: a filter without samples makes an empty list.
  if (!request_.filter.event_types.Selects(event_type)) return absl::OkStatus();
  const std::vector<StreamKind>& kinds = request_.filter.stream_kinds;
  // Samples of hosts are selected unless the kinds of streams are restricted to others.
  if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), StreamKind::kHost) == kinds.end()) {
    return absl::OkStatus();
  }
  TimelineOptions options = Options();
  options.filter.stream_kinds = {StreamKind::kHost};
  options.filter.host_samples = true;  // the batches are without them
  // The readings of all types must meet the same chunks, so that damaged ones count once: with a
  // filter the reader would skip chunks without the current type.
  options.filter.event_types = EventFilter();
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineReader> reader,
                   TimelineReader::Open(source_, std::move(options)));
  TimelineBatch batch;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_batch, reader->Next(batch));
    if (!has_batch) break;
    for (const TimelineRecord* record : batch.records) {
      if (record->start().event_type != event_type) continue;
      const TimelineStream& stream = reader->streams()[record->stream];
      RETURN_IF_ERROR(take(stream.description.identity, *record));
    }
  }
  Record(*reader, unreadable_of_hosts_, summary);
  return absl::OkStatus();
}

absl::Status SideReader::ReadHbmSamples(uint64_t begin_ns, uint64_t end_ns,
                                        const HbmSampleSink& take, ExportSummary& summary) {
  TimelineOptions options = Options();
  std::vector<std::string> types;
  for (const std::string_view type : kMemoryEventTypes) {
    if (options.filter.event_types.Selects(type)) types.emplace_back(type);
  }
  if (types.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(options.filter.event_types, EventFilter::Parse(types));
  // Only the range with memory events is read again, which the caller found among the batches.
  TimelineFilter& filter = options.filter;
  filter.window_start_ns = std::max(filter.window_start_ns, begin_ns);
  // The end of a window is exclusive, while end_ns is the last event's.
  filter.window_end_ns = std::min(filter.window_end_ns, end_ns + (end_ns < UINT64_MAX ? 1 : 0));
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineReader> reader,
                   TimelineReader::Open(source_, std::move(options)));
  ShapeFieldTable fields;
  HbmUse use(reader->streams(), fields);
  std::vector<HbmSample> samples;
  const auto give_out = [&]() -> absl::Status {
    for (const HbmSample& sample : samples) {
      RETURN_IF_ERROR(take(use.memories()[sample.hbm], sample));
    }
    samples.clear();
    return absl::OkStatus();
  };
  TimelineBatch batch;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_batch, reader->Next(batch));
    if (!has_batch) break;
    use.Take(batch, samples);
    RETURN_IF_ERROR(give_out());
  }
  // Samples wait until no event can end before them any more, so that some are left.
  use.Finish(samples);
  RETURN_IF_ERROR(give_out());
  if (use.counts().dropped > 0) {
    summary.warnings.push_back(
        fmt::format("the memory in use of devices omits {} events, because too many memories or "
                    "events were tracked at once",
                    use.counts().dropped));
  }
  // The batches have met all of these chunks already.
  uint64_t counted = summary.counts.unreadable_chunks;
  Record(*reader, counted, summary);
  return absl::OkStatus();
}

}  // namespace neurontrace
