// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/capture_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/store_chunk_source.h"
#include "aggregator/view/busy_map.h"
#include "aggregator/view/lateness_map.h"
#include "aggregator/view/name_summary.h"
#include "aggregator/view/selected_streams.h"
#include "aggregator/view/span_collector.h"
#include "aggregator/view/step_busy_map.h"
#include "aggregator/view/step_map.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// How long the layout of a running capture, or of one whose clocks may become better, is used.
constexpr uint64_t kLiveLayoutNs = 2 * kNsPerSecond;
constexpr uint64_t kProvisionalLayoutNs = 15 * kNsPerSecond;

struct ViewWindow {
  uint64_t from_ns = 0;
  uint64_t to_ns = 1;
};

absl::StatusOr<BusyMap::Metric> ParseMetric(const std::string& text) {
  if (text == "busy") return BusyMap::Metric::kBusy;
  if (text == "wait") return BusyMap::Metric::kWait;
  if (text == "events") return BusyMap::Metric::kEvents;
  return InvalidArgument("metric: '{}' is unknown; there are busy, wait, events, late and step",
                         text);
}

// Returns whether the columns of the heat map are steps.
absl::StatusOr<bool> ParseByStep(const ViewRequest& request) {
  if (request.by == "step") return true;
  // ViewRequest's default is that of a summary.
  if (request.by == "time" || request.by == ViewRequest().by) return false;
  return InvalidArgument("by: '{}' is unknown; there are time and step", request.by);
}

// The shape of the heat map that the request asks for.
absl::StatusOr<HeatShape> ParseShape(const ViewRequest& request) {
  if (request.sort != "rank" && request.sort != "worst") {
    return InvalidArgument("sort: '{}' is unknown; there are rank and worst", request.sort);
  }
  return HeatShape{.lines_max = request.lines, .is_worst_first = request.sort == "worst"};
}

// The event types that a map is made of. Chunks without them are not read.
absl::StatusOr<EventFilter> HeatTypesOf(const CaptureLayout& layout, const std::string& metric) {
  if (metric == "late") return EventFilter::Parse({"cc_running", "enc_barrier"});
  if (metric != "step") return EventFilter();
  // A framework's step is recognised by its name or an argument, whatever its type is.
  const bool has_framework =
      std::ranges::any_of(layout.capture().streams, [](const StreamDescription& stream) {
        return HasFrameworkEvents(stream.identity.kind) && !IsFrameworkMapping(stream.identity);
      });
  if (has_framework) return EventFilter();
  return EventFilter::Parse({"enc_barrier"});
}

// How many columns a map has whose events are known to a bin.
uint32_t ColumnsOfBins(const HeatWindow& window, const DigestFeed* digests) {
  if (digests == nullptr || digests->bin_max_ns() == 0) return window.columns;
  const uint64_t bins = (window.to_ns - window.from_ns) / digests->bin_max_ns();
  return static_cast<uint32_t>(std::clamp<uint64_t>(bins, 1, window.columns));
}

// The window of the request; what it leaves open is the capture's whole length.
absl::StatusOr<ViewWindow> WindowOf(const CaptureLayout& layout, const ViewRequest& request) {
  ViewWindow window{.from_ns = request.from_ns.value_or(layout.begin_ns()),
                    .to_ns = request.to_ns.value_or(layout.end_ns() + 1)};
  // One moment is a window of a nanosecond: what a click on a span asks for.
  if (window.to_ns == window.from_ns) ++window.to_ns;
  if (window.to_ns <= window.from_ns) {
    return InvalidArgument("to: {} is earlier than from, {}", window.to_ns, window.from_ns);
  }
  return window;
}

}  // namespace

std::shared_ptr<const CaptureLayout> CaptureViews::Find(const CaptureRecord& record) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  const MutexLock lock(mutex_);
  const auto known = std::ranges::find(known_, record.id, &Known::id);
  if (known == known_.end()) return nullptr;
  const CaptureLayout& layout = *known->layout;
  const uint64_t age_ns = SubtractSaturating(now_ns, known->made_at_ns);
  // The record of a running capture changes all the time. After its end, only late deliveries and
  // people change it.
  const bool has_changed =
      layout.record().state != record.state || (!layout.is_live() && layout.record() != record);
  const bool is_old = layout.is_live() ? age_ns > kLiveLayoutNs
                                       : !layout.clocks().is_final && age_ns > kProvisionalLayoutNs;
  if (has_changed || is_old) {
    known_.erase(known);
    return nullptr;
  }
  known_.splice(known_.begin(), known_, known);
  return known_.front().layout;
}

void CaptureViews::Keep(const CaptureRecord& record, std::shared_ptr<const CaptureLayout> layout) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const Known& known) { return known.id == record.id; });
  known_.push_front({record.id, std::move(layout), now_ns});
  if (known_.size() > limits::kViewCapturesMax) known_.pop_back();
}

absl::StatusOr<std::shared_ptr<const CaptureLayout>> CaptureViews::Layout(
    const CaptureRecord& record) {
  if (auto known = Find(record)) return known;
  StoreChunkSource source(deps_.store.OpenSnapshot(record.id), record);
  ASSIGN_OR_RETURN(CaptureDescription capture, source.Describe());
  ASSIGN_OR_RETURN(CaptureClocks clocks, deps_.clocks.ClocksOf(record));
  auto layout = std::make_shared<const CaptureLayout>(
      CaptureLayout::Make(record, std::move(capture), std::move(clocks)));
  Keep(record, layout);
  return layout;
}

absl::StatusOr<ViewReading> CaptureViews::Read(const CaptureLayout& layout,
                                               const ViewRequest& request,
                                               const ViewCancel& cancelled, Exporter& exporter,
                                               const ReadOptions& options) {
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(layout, request));
  StoreChunkSource stored(deps_.store.OpenSnapshot(layout.record().id), layout.record());
  ASSIGN_OR_RETURN(const EventQuery query, EventQuery::Parse(request.query));
  const std::vector<uint32_t> streams = layout.StreamNumbers(query, request.streams);
  uint64_t chunks_max = chunks_max_;
  if (options.reads_each_stream) {
    chunks_max = std::max<uint64_t>(chunks_max, std::min(streams.size(), limits::kViewStreamsMax));
  }
  SelectedStreams source(stored, layout.capture(), streams, chunks_max, options.digests);
  source.ReadOnly(options.sample, layout.clocks());
  ExportRequest reading;
  reading.clocks = &layout.clocks();
  reading.no_flows = true;
  reading.filter.window_start_ns = window.from_ns;
  reading.filter.window_end_ns = window.to_ns;
  reading.filter.event_types = options.types;
  reading.filter.own_time_begin_ns = layout.begin_ns();
  ExportProgress progress;
  // Nobody waits for the answer of a client that left, even if it is done.
  bool has_left = false;
  const auto is_done = [&] { return options.is_done && options.is_done(); };
  const auto summary = RunExporter(source, exporter, reading, options.takes_host_samples,
                                   [&](const ExportProgress& now) {
                                     progress = now;
                                     has_left = cancelled && cancelled();
                                     return !has_left && !is_done();
                                   });
  if (summary.ok()) {
    progress = summary->progress;
    progress.unreadable_chunks = summary->counts.unreadable_chunks;
  } else if (!absl::IsCancelled(summary.status()) || has_left || !is_done()) {
    return summary.status();
  }
  // Chunks beyond the limit are among the unreadable ones.
  return ViewReading{.is_complete = progress.unreadable_chunks == 0,
                     .chunks_scanned = progress.chunks_read,
                     .chunks_read = source.chunks_read(),
                     .chunks_refused = source.chunks_refused()};
}

absl::StatusOr<std::unique_ptr<DigestFeed>> CaptureViews::FindDigests(
    const CaptureLayout& layout, const ViewRequest& request,
    const absl::flat_hash_set<uint32_t>& excluded, uint32_t& pixels) const {
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(layout, request));
  const std::vector<uint32_t> streams = layout.StreamNumbers({}, request.streams);
  const DigestFeed::Capture capture{layout.capture(), layout.clocks(), streams};
  DigestFeed::Window at{.from_ns = window.from_ns, .to_ns = window.to_ns};
  const uint64_t chunks = DigestFeed::ChunksInWindow(capture, at);
  if (chunks <= exact_chunks_max_) return nullptr;
  StoreChunkSource stored(deps_.store.OpenSnapshot(layout.record().id), layout.record());
  std::unique_ptr<DigestFeed> best;
  for (uint32_t tried = pixels; tried > 0; tried /= 2) {
    at.merge_ns = std::max<uint64_t>((window.to_ns - window.from_ns) / tried, 1);
    ASSIGN_OR_RETURN(DigestFeed feed,
                     DigestFeed::Make(deps_.store.digests(), stored, capture, at, excluded));
    const bool is_better = best == nullptr || feed.chunks() > best->chunks();
    if (is_better) {
      best = std::make_unique<DigestFeed>(std::move(feed));
      pixels = tried;
    }
    if (best->chunks() + chunks_max_ >= chunks) break;
  }
  return best;
}

absl::StatusOr<std::optional<SpanAnswer>> CaptureViews::CollectSpans(
    const CaptureLayout& layout, const ViewRequest& request, const ViewCancel& cancelled,
    absl::flat_hash_set<uint32_t>& excluded) {
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(layout, request));
  uint32_t pixels = request.pixels;
  ASSIGN_OR_RETURN(const auto digests, FindDigests(layout, request, excluded, pixels));
  SpanCollector collector({.from_ns = window.from_ns, .to_ns = window.to_ns, .pixels = pixels},
                          digests.get());
  ASSIGN_OR_RETURN(const ViewReading reading,
                   Read(layout, request, cancelled, collector,
                        {.takes_host_samples = true, .digests = digests.get()}));
  if (digests != nullptr && !digests->conflicts().empty()) {
    excluded.insert(digests->conflicts().begin(), digests->conflicts().end());
    return std::nullopt;
  }
  SpanAnswer answer = collector.Take();
  if (digests != nullptr) {
    answer.digested_chunks = digests->chunks();
    answer.unreadable_chunks += digests->unreadable_chunks();
  }
  if (pixels < request.pixels) {
    answer.cut += fmt::format("{}drawn at 1/{} of the resolution: the window has too many chunks",
                              answer.cut.empty() ? "" : "; ", request.pixels / pixels);
  }
  if (reading.chunks_refused > 0) {
    answer.unreadable_chunks -= std::min(answer.unreadable_chunks, reading.chunks_refused);
    answer.cut += fmt::format("{}the window has more than {} chunks: choose a shorter one",
                              answer.cut.empty() ? "" : "; ", chunks_max_);
  }
  return answer;
}

// A stream is excluded at most once, so that the loop ends.
template <typename Make>
absl::StatusOr<CaptureViews::DigestedReading> CaptureViews::ReadDigested(
    const CaptureLayout& layout, const ViewRequest& request, DigestUse use, uint64_t merge_ns,
    const ViewCancel& cancelled, const Make& make) {
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(layout, request));
  ASSIGN_OR_RETURN(const EventQuery query, EventQuery::Parse(request.query));
  const std::vector<uint32_t> streams = layout.StreamNumbers(query, request.streams);
  const DigestFeed::Capture capture{layout.capture(), layout.clocks(), streams};
  const DigestFeed::Window at{window.from_ns, window.to_ns, merge_ns, use};
  const bool has_digests = DigestFeed::ChunksInWindow(capture, at) > exact_chunks_max_;
  absl::flat_hash_set<uint32_t> excluded;
  while (true) {
    DigestedReading result;
    if (has_digests) {
      StoreChunkSource stored(deps_.store.OpenSnapshot(layout.record().id), layout.record());
      ASSIGN_OR_RETURN(DigestFeed feed,
                       DigestFeed::Make(deps_.store.digests(), stored, capture, at, excluded));
      result.digests = std::make_unique<DigestFeed>(std::move(feed));
    }
    DigestFeed* const digests = result.digests.get();
    ASSIGN_OR_RETURN(result.reading,
                     Read(layout, request, cancelled, make(digests), {.digests = digests}));
    if (digests == nullptr || digests->conflicts().empty()) {
      if (digests != nullptr) result.reading.is_complete &= digests->unreadable_chunks() == 0;
      return result;
    }
    excluded.insert(digests->conflicts().begin(), digests->conflicts().end());
  }
}

// A stream is excluded at most once, so that the loop ends.
absl::StatusOr<std::string> CaptureViews::Spans(const CaptureRecord& record,
                                                const ViewRequest& request,
                                                const ViewCancel& cancelled) {
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  absl::flat_hash_set<uint32_t> excluded;
  while (true) {
    ASSIGN_OR_RETURN(const auto answer, CollectSpans(*layout, request, cancelled, excluded));
    if (answer) return EncodeSpans(*answer, layout->version());
  }
}

absl::StatusOr<std::string> CaptureViews::Events(const CaptureRecord& record,
                                                 const ViewRequest& request,
                                                 const ViewCancel& cancelled) {
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(*layout, request));
  ASSIGN_OR_RETURN(EventQuery query, EventQuery::Parse(request.query));
  EventCollector collector({.from_ns = window.from_ns,
                            .to_ns = window.to_ns,
                            .skip = request.cursor,
                            .limit = std::min(request.limit, limits::kViewEventsMax),
                            .query = std::move(query)});
  ASSIGN_OR_RETURN(
      const ViewReading reading,
      Read(*layout, request, cancelled, collector,
           {.reads_each_stream = true, .is_done = [&collector] { return collector.is_full(); }}));
  return collector.Json(reading.is_complete, reading.chunks_scanned);
}

absl::StatusOr<std::string> CaptureViews::Search(const CaptureRecord& record,
                                                 const ViewRequest& request,
                                                 const ViewCancel& cancelled) {
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(*layout, request));
  ASSIGN_OR_RETURN(EventQuery query, EventQuery::Parse(request.query));
  if (query.is_empty()) return InvalidArgument("q: is empty; write for example q=dur>10ms");
  const EventCollector::Options options{.from_ns = window.from_ns,
                                        .to_ns = window.to_ns,
                                        .skip = request.cursor,
                                        .limit = request.limit,
                                        .query = query,
                                        .is_search = true};
  if (query.depends_on_names_only()) return CountedSearch(*layout, request, options, cancelled);
  EventCollector collector(options);
  ASSIGN_OR_RETURN(const ViewReading reading, Read(*layout, request, cancelled, collector, {}));
  return collector.Json(reading.is_complete, reading.chunks_scanned);
}

// Counts first: then only streams with hits are read, from the first hit until the list is full.
absl::StatusOr<std::string> CaptureViews::CountedSearch(const CaptureLayout& layout,
                                                        const ViewRequest& request,
                                                        const EventCollector::Options& options,
                                                        const ViewCancel& cancelled) {
  // Slots that a minimap of 512 parts can show; finer ones would cost more than they show.
  constexpr uint64_t kSlots = 64;
  std::optional<EventCollector> counted;
  const uint64_t merge_ns = (options.to_ns - options.from_ns) / kSlots;
  ASSIGN_OR_RETURN(const DigestedReading counting,
                   ReadDigested(layout, request, DigestUse::kCounts, merge_ns, cancelled,
                                [&](DigestFeed* digests) -> Exporter& {
                                  EventCollector::Options counts = options;
                                  counts.digests = digests;
                                  // Where all is read, this is the answer.
                                  if (digests != nullptr) counts.skip = counts.limit = 0;
                                  return counted.emplace(std::move(counts));
                                }));
  bool is_complete = counting.reading.is_complete;
  uint64_t chunks_scanned = counting.reading.chunks_scanned;
  if (counting.digests == nullptr) return counted->Json(is_complete, chunks_scanned);
  EventCollector::Options listed = options;
  listed.is_counted_elsewhere = true;
  std::optional<EventCollector> list(std::in_place, listed);
  ViewRequest narrow = request;
  std::vector<uint32_t> streams = counted->StreamsWithHits();
  if (!streams.empty()) {
    narrow.from_ns = counted->FirstHitNs();
    narrow.to_ns = options.to_ns;
    narrow.streams = std::move(streams);
    const ReadOptions until_full{.reads_each_stream = true,
                                 .is_done = [&list] { return list->is_full(); }};
    ASSIGN_OR_RETURN(ViewReading listing, Read(layout, narrow, cancelled, *list, until_full));
    chunks_scanned += listing.chunks_scanned;
    // Reading runs ahead of the list. Only chunks that were refused before its end matter.
    if (list->is_full() && listing.chunks_refused > 0) {
      narrow.to_ns = std::max(*narrow.from_ns, list->full_at_ns()) + 1;
      list.emplace(listed);
      ASSIGN_OR_RETURN(listing, Read(layout, narrow, cancelled, *list, until_full));
      chunks_scanned += listing.chunks_scanned;
    }
    is_complete &= listing.is_complete;
  }
  list->UseCounts(*counted);
  return list->Json(is_complete, chunks_scanned);
}

absl::StatusOr<std::string> CaptureViews::Summary(const CaptureRecord& record,
                                                  const ViewRequest& request,
                                                  const ViewCancel& cancelled) {
  if (request.by != "name" && request.by != "rank") {
    return InvalidArgument("by: '{}' is unknown; there are name and rank", request.by);
  }
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  ASSIGN_OR_RETURN(const ViewWindow window, WindowOf(*layout, request));
  const auto by = request.by == "name" ? NameSummary::By::kName : NameSummary::By::kRank;
  std::optional<NameSummary> summary;
  // Times within the window do not matter, so that the coarsest digests will do.
  ASSIGN_OR_RETURN(
      const DigestedReading read,
      ReadDigested(
          *layout, request, DigestUse::kSums, UINT64_MAX, cancelled,
          [&](DigestFeed* digests) -> Exporter& {
            return summary.emplace(by, NameSummary::Window{window.from_ns, window.to_ns}, digests);
          }));
  return summary->Json(read.reading.is_complete);
}

// Steps are numbered from the window's begin on, so that columns by step cannot be sampled.
template <typename Map>
absl::StatusOr<std::string> CaptureViews::ComparedHeat(const CaptureLayout& layout,
                                                       const ViewRequest& request,
                                                       const HeatWindow& window,
                                                       const HeatShape& shape, bool is_by_step,
                                                       const ViewCancel& cancelled) {
  const auto by = is_by_step ? Map::By::kStep : Map::By::kTime;
  ASSIGN_OR_RETURN(const EventFilter types, HeatTypesOf(layout, request.metric));
  Map whole(by, window);
  ASSIGN_OR_RETURN(const ViewReading reading,
                   Read(layout, request, cancelled, whole, {.types = types}));
  if (reading.chunks_refused == 0 || is_by_step) return whole.Take(shape);
  const TimeSample sample =
      TimeSample::Of(window.from_ns, window.to_ns, layout.StreamNumbers({}, request.streams).size(),
                     reading.chunks_read + reading.chunks_refused, chunks_max_);
  Map sampled(by, window, sample);
  RETURN_IF_ERROR(
      Read(layout, request, cancelled, sampled, {.types = types, .sample = sample}).status());
  return sampled.Take(shape);
}

absl::StatusOr<std::string> CaptureViews::Heat(const CaptureRecord& record,
                                               const ViewRequest& request,
                                               const ViewCancel& cancelled) {
  ASSIGN_OR_RETURN(const HeatShape shape, ParseShape(request));
  auto metric = BusyMap::Metric::kBusy;
  if (request.metric != "late" && request.metric != "step") {
    ASSIGN_OR_RETURN(metric, ParseMetric(request.metric));
  }
  ASSIGN_OR_RETURN(const bool is_by_step, ParseByStep(request));
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  ASSIGN_OR_RETURN(const ViewWindow stretch, WindowOf(*layout, request));
  const HeatWindow window{
      .from_ns = stretch.from_ns,
      .to_ns = stretch.to_ns,
      .columns = HeatMatrix::ColumnsWithinLimit(layout->capture().streams.size(), request.columns)};
  if (request.metric == "late") {
    return ComparedHeat<LatenessMap>(*layout, request, window, shape, is_by_step, cancelled);
  }
  if (request.metric == "step") {
    return ComparedHeat<StepMap>(*layout, request, window, shape, is_by_step, cancelled);
  }
  if (is_by_step) {
    StepBusyMap map(metric, window);
    RETURN_IF_ERROR(Read(*layout, request, cancelled, map, {}).status());
    return map.Take(shape);
  }
  std::optional<BusyMap> map;
  const auto column_ns = static_cast<uint64_t>(window.column_ns());
  ASSIGN_OR_RETURN(const DigestedReading read,
                   ReadDigested(*layout, request, DigestUse::kBins, column_ns, cancelled,
                                [&](DigestFeed* digests) -> Exporter& {
                                  HeatWindow shown = window;
                                  shown.columns = ColumnsOfBins(window, digests);
                                  return map.emplace(metric, shown, digests);
                                }));
  return map->Take(shape);
}

class CaptureViews::LayoutReader final : public WindowReader {
 public:
  LayoutReader(CaptureViews& views, const CaptureLayout& layout, const ViewCancel& cancelled)
      : views_(views), layout_(layout), cancelled_(cancelled) {}

  absl::StatusOr<ViewReading> Read(uint64_t from_ns, uint64_t to_ns,
                                   const std::vector<uint32_t>& streams,
                                   ViewCollector& collector) override {
    ViewRequest request;
    request.from_ns = from_ns;
    request.to_ns = to_ns;
    request.streams = streams;
    return views_.Read(layout_, request, cancelled_, collector, {});
  }

 private:
  CaptureViews& views_;
  const CaptureLayout& layout_;
  const ViewCancel& cancelled_;
};

absl::StatusOr<std::string> CaptureViews::Links(const CaptureRecord& record,
                                                const ViewRequest& request,
                                                const ViewCancel& cancelled) {
  ASSIGN_OR_RETURN(const EventId id, EventId::Parse(request.event));
  EventLinker::Options options{
      .depth = request.depth, .breadth = request.breadth, .chunks_max = chunks_max_};
  if (request.chain == NameOf(LinkDirection::kUpstream)) {
    options.direction = LinkDirection::kUpstream;
  } else if (request.chain == NameOf(LinkDirection::kDownstream)) {
    options.direction = LinkDirection::kDownstream;
  } else if (!request.chain.empty()) {
    return InvalidArgument("chain: '{}' is unknown; there are upstream and downstream",
                           request.chain.substr(0, 64));
  }
  ASSIGN_OR_RETURN(const auto layout, Layout(record));
  LayoutReader reader(*this, *layout, cancelled);
  return EventLinker(*layout, reader).Json(id, options);
}

}  // namespace neurontrace
