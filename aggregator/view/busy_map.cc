// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/busy_map.h"

#include <algorithm>
#include <utility>

#include "aggregator/view/digest.h"
#include "aggregator/view/digest_feed.h"

namespace neurontrace {

std::string_view NameOf(BusyMap::Metric metric) {
  switch (metric) {
    case BusyMap::Metric::kBusy:
      return "busy";
    case BusyMap::Metric::kWait:
      return "wait";
    case BusyMap::Metric::kEvents:
      break;
  }
  return "events";
}

BusyMap::BusyMap(Metric metric, const Window& window, DigestFeed* digests)
    : metric_(metric), window_(window), digests_(digests) {}

absl::Status BusyMap::Begin(const TimelineHeader& header) {
  BeginRows(header);
  map_.resize(header.streams.size());
  if (digests_ != nullptr) digests_->Begin(header);
  return absl::OkStatus();
}

// Spans come in the order of their starts, so what lies before `until_ns` is counted already.
void BusyMap::Cover::Add(const Window& window, uint64_t begin_ns, uint64_t end_ns) {
  begin_ns = std::max({begin_ns, until_ns, window.from_ns});
  end_ns = std::min(end_ns, window.to_ns);
  if (begin_ns >= end_ns) return;
  until_ns = end_ns;
  AddShare(window, begin_ns, end_ns, 1);
}

void BusyMap::Cover::AddShare(const Window& window, uint64_t begin_ns, uint64_t end_ns,
                              double share) {
  uint64_t at_ns = std::max(begin_ns, window.from_ns);
  const uint64_t stop_ns = std::min(end_ns, window.to_ns);
  if (at_ns >= stop_ns) return;
  if (ns.empty()) ns.resize(window.columns);
  const double column_ns = window.column_ns();
  for (size_t column = window.ColumnOf(at_ns); at_ns < stop_ns; ++column) {
    const auto column_end_ns =
        column + 1 >= window.columns
            ? window.to_ns
            : window.from_ns + static_cast<uint64_t>(column_ns * static_cast<double>(column + 1));
    const uint64_t until = std::min(stop_ns, std::max(column_end_ns, at_ns + 1));
    ns[std::min<size_t>(column, window.columns - 1)] +=
        static_cast<float>(share * static_cast<double>(until - at_ns));
    at_ns = until;
  }
}

void BusyMap::AddDigestedBefore(uint64_t start_ns) {
  while (const DigestedSums* sums = digests_->NextSums(start_ns)) {
    metric_ == Metric::kEvents ? AddBegun(*sums) : AddCovers(*sums);
  }
}

// The whole bin counts where its middle is.
void BusyMap::AddBegun(const DigestedSums& sums) {
  const uint64_t bin_ns = sums.node->bin_ns;
  for (const DigestRun& run : sums.sums.of(DigestMeasure::kBegun)) {
    for (uint64_t bin = run.begin; bin < run.begin + run.count; ++bin) {
      const uint64_t at_ns = sums.clock->ToReference(bin * bin_ns + bin_ns / 2);
      if (at_ns >= window_.to_ns) break;
      CountEvents(map_[sums.stream], at_ns, run.value);
    }
  }
}

void BusyMap::CountEvents(Row& row, uint64_t at_ns, uint64_t count) const {
  if (row.events.empty()) row.events.resize(window_.columns);
  if (window_.Contains(at_ns)) row.events[window_.ColumnOf(at_ns)] += static_cast<float>(count);
}

void BusyMap::AddCovers(const DigestedSums& sums) {
  const auto reference = [&](uint64_t raw_ns) {
    return sums.clock->ToReference(std::min(raw_ns, kTimeMaxNs));
  };
  // Covers of open spans have no end of their own.
  const auto known = [&](uint64_t raw_ns) {
    return std::min(reference(raw_ns), sums.known_until_ns);
  };
  const uint64_t bin_ns = sums.node->bin_ns;
  // Spans that began before the stream's first digest here were running when the window began.
  const uint64_t begin_ns =
      sums.is_first ? window_.from_ns : sums.clock->ToReference(sums.node->begin_ns);
  const auto add = [&](DigestMeasure measure, Cover& cover) {
    const auto index = static_cast<size_t>(measure);
    if (const uint64_t before_ns = sums.node->covered_before_ns[index]; before_ns > 0) {
      cover.Add(window_, begin_ns, known(before_ns));
    }
    uint64_t edge = UINT64_MAX;  // the bin behind the last run, at `edge_ns`
    uint64_t edge_ns = 0;
    for (const DigestRun& run : sums.sums.of(measure)) {
      const double share = static_cast<double>(run.value) / static_cast<double>(bin_ns);
      const uint64_t run_ns = run.begin == edge ? edge_ns : reference(run.begin * bin_ns);
      edge = run.begin + run.count;
      edge_ns = reference(edge * bin_ns);
      const bool is_full = run.value == bin_ns;
      cover.AddShare(window_, run_ns, is_full ? std::min(edge_ns, sums.known_until_ns) : edge_ns,
                     share);
    }
    if (const uint64_t until_ns = sums.node->covered_until_ns[index]; until_ns > 0) {
      cover.until_ns = std::max(cover.until_ns, std::min(known(until_ns), window_.to_ns));
    }
  };
  Row& row = map_[sums.stream];
  if (metric_ == Metric::kWait) return add(DigestMeasure::kWait, row.other);
  add(DigestMeasure::kHardware, row.hardware);
  add(DigestMeasure::kOther, row.other);
}

absl::Status BusyMap::WriteEvent(const TimelineRecord& record, uint64_t,
                                 const Placement& placement) {
  if (digests_ != nullptr) {
    if (digests_->HasEvent(record)) return absl::OkStatus();
    AddDigestedBefore(record.start_ns);
  }
  Row& row = map_[record.stream];
  if (metric_ == Metric::kEvents) {
    CountEvents(row, record.start_ns, 1);
    return absl::OkStatus();
  }
  // The length of a span without its stop or its start is not known.
  if ((record.flags & (kInvalidLength | kStartLost)) != 0) return absl::OkStatus();
  if (metric_ == Metric::kWait) {
    const DerivedType type = fields_.Of(*record.shape).type;
    if (type != DerivedType::kCollective && type != DerivedType::kHostBarrier) {
      return absl::OkStatus();
    }
  }
  const bool is_hardware = metric_ == Metric::kBusy && IsHardware(placement);
  (is_hardware ? row.hardware : row.other).Add(window_, record.start_ns, record.end_ns);
  return absl::OkStatus();
}

void BusyMap::FillRow(const TimelineStream& stream, const Row& row, size_t matrix_row) {
  const bool has_hardware = !row.hardware.ns.empty();
  const std::vector<float>& covered = has_hardware ? row.hardware.ns : row.other.ns;
  const double column_ns = window_.column_ns();
  // The index has the first and the last time of the stream, as an idle window has no event.
  const auto known_from = stream.description.events == 0 || stream.clock == nullptr
                              ? UINT64_MAX
                              : stream.clock->ToReference(stream.description.first_timestamp_ns);
  const auto known_to =
      stream.clock == nullptr ? 0 : stream.clock->ToReference(stream.description.last_timestamp_ns);
  for (size_t column = 0; column < window_.columns; ++column) {
    const auto begin =
        window_.from_ns + static_cast<uint64_t>(column_ns * static_cast<double>(column));
    if (begin > known_to || begin + column_ns < known_from) continue;
    float value = 0;
    if (metric_ == Metric::kEvents) {
      if (!row.events.empty()) value = row.events[column];
    } else if (!covered.empty()) {
      value = std::min(1.0f, covered[column] / static_cast<float>(column_ns));
    }
    matrix_->Put(matrix_row, column, value);
  }
}

// The rows are described here, because the streams do not outlive the reading.
absl::Status BusyMap::Finish(ExportSummary& summary) {
  if (digests_ != nullptr) AddDigestedBefore(UINT64_MAX);
  answer_ = {.metric = NameOf(metric_),
             .unit = metric_ == Metric::kEvents ? "events" : "share",
             .window = window_,
             .is_complete = summary.counts.unreadable_chunks == 0 &&
                            (digests_ == nullptr || digests_->unreadable_chunks() == 0),
             .shift_ns = digests_ == nullptr ? 0 : digests_->bin_max_ns()};
  matrix_.emplace(rows_.streams().size(), window_.columns, /*has_bounds=*/false);
  for (const uint32_t stream : rows_.streams()) {
    FillRow(header_->streams[stream], map_[stream], answer_.rows.size());
    answer_.rows.push_back(DescribeHeatRow(*header_, stream));
  }
  if (!matrix_->HasValues()) answer_.reason = "no rank has an event in this window";
  return absl::OkStatus();
}

}  // namespace neurontrace
