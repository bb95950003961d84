// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/step_busy_map.h"

#include <algorithm>
#include <cassert>

#include "aggregator/view/lateness_map.h"
#include "lib/base/time_units.h"

namespace neurontrace {

StepBusyMap::StepBusyMap(BusyMap::Metric metric, const HeatWindow& window)
    : metric_(metric), axis_(window.columns) {
  answer_ = {.metric = NameOf(metric),
             .unit = metric == BusyMap::Metric::kEvents ? "events" : "share",
             .window = window};
}

absl::Status StepBusyMap::Begin(const TimelineHeader& header) {
  BeginRows(header);
  finder_.emplace(header.streams, fields_, JobFacts(header));
  steps_.emplace(header.streams.size());
  cores_.resize(header.streams.size());
  row_of_ = AddCoreRows(header, answer_.rows);
  matrix_.emplace(answer_.rows.size(), answer_.window.columns, /*has_bounds=*/false);
  return absl::OkStatus();
}

absl::Status StepBusyMap::WriteEvent(const TimelineRecord& record, uint64_t,
                                     const Placement& placement) {
  if (row_of_[record.stream] == kNoHeatRow) return absl::OkStatus();
  CoreState& core = cores_[record.stream];
  const uint64_t at_ns = std::max(record.start_ns, answer_.window.from_ns);
  if (core.begin_ns == UINT64_MAX) core.begin_ns = at_ns;
  Settle(record.stream, record.start_ns);
  if (metric_ == BusyMap::Metric::kEvents && answer_.window.Contains(record.start_ns)) {
    const auto stretch = std::ranges::find_if(
        core.stretches, [&](const Stretch& one) { return record.start_ns < one.end_ns; });
    ++stretch->events;  // the last one has no end
  }
  // The length of a span without its stop or its start is not known.
  if ((record.flags & (kInvalidLength | kStartLost)) != 0) return absl::OkStatus();
  const DerivedType type = fields_.Of(*record.shape).type;
  const bool is_barrier = type == DerivedType::kHostBarrier;
  if (metric_ == BusyMap::Metric::kBusy ||
      (metric_ == BusyMap::Metric::kWait && (is_barrier || type == DerivedType::kCollective))) {
    const bool is_hardware = metric_ == BusyMap::Metric::kBusy && IsHardware(placement);
    core.has_hardware |= is_hardware;
    Cover(core, is_hardware ? kHardware : kOther, at_ns, record.end_ns);
  }
  if (is_barrier && (record.flags & kOpen) == 0) Cut(core, record);
  return absl::OkStatus();
}

// Spans come in the order of their starts, so what lies before until_ns is counted already.
void StepBusyMap::Cover(CoreState& core, Source source, uint64_t begin_ns, uint64_t end_ns) const {
  uint64_t at_ns = std::max(begin_ns, core.until_ns[source]);
  const uint64_t stop_ns = std::min(end_ns, answer_.window.to_ns);
  if (at_ns >= stop_ns) return;
  core.until_ns[source] = stop_ns;
  for (Stretch& stretch : core.stretches) {
    if (stretch.end_ns <= at_ns) continue;
    const uint64_t part_end_ns = std::min(stop_ns, stretch.end_ns);
    stretch.covered_ns[source] += part_end_ns - at_ns;
    at_ns = part_end_ns;
    if (at_ns == stop_ns) return;
  }
}

// What is covered beyond the barrier's end is so without a gap: it began before the barrier did.
void StepBusyMap::Cut(CoreState& core, const TimelineRecord& barrier) {
  const size_t count = core.stretches.size();
  // A barrier within another one ends nothing.
  if (count > 1 && barrier.end_ns <= core.stretches[count - 2].end_ns) return;
  Stretch next;
  Stretch& ended = core.stretches.back();
  ended.barrier_ns = barrier.start_ns;
  ended.end_ns = barrier.end_ns;
  for (const Source source : {kHardware, kOther}) {
    next.covered_ns[source] =
        std::min(SubtractSaturating(core.until_ns[source], ended.end_ns), ended.covered_ns[source]);
    ended.covered_ns[source] -= next.covered_ns[source];
  }
  core.stretches.push_back(next);
}

absl::Status StepBusyMap::EndBatch(const TimelineBatch& batch) {
  finder_->Take(batch, closed_);
  NumberSteps();
  return absl::OkStatus();
}

// A barrier that matched nothing becomes a part of the step that the next one ends.
void StepBusyMap::NumberSteps() {
  for (const Collective& collective : closed_) {
    if (collective.kind != CollectiveKind::kHostBarrier) continue;
    const bool is_boundary = BarrierSteps::IsBoundary(collective);
    const uint64_t number = steps_->NumberOf(collective);
    for (const CollectiveMember& member : collective.members) {
      std::deque<Stretch>& stretches = cores_[member.stream].stretches;
      const auto ended = std::ranges::find_if(stretches, [&](const Stretch& stretch) {
        return stretch.end_ns != UINT64_MAX && stretch.barrier_ns == member.start_ns;
      });
      if (ended == stretches.end()) continue;
      if (is_boundary) {
        ended->number = number;
        continue;
      }
      const auto next = ended + 1;
      for (const Source source : {kHardware, kOther}) {
        next->covered_ns[source] += ended->covered_ns[source];
      }
      next->events += ended->events;
      stretches.erase(ended);
    }
    if (is_boundary) steps_->Advance(collective);
  }
  closed_.clear();
}

void StepBusyMap::Settle(uint32_t stream, uint64_t now_ns) {
  CoreState& core = cores_[stream];
  assert(!core.stretches.empty() && core.stretches.back().end_ns == UINT64_MAX);
  while (core.stretches.front().number && core.stretches.front().end_ns <= now_ns) {
    const Stretch& step = core.stretches.front();
    // A step that reaches beyond the window is not known in full.
    if (step.end_ns > core.begin_ns && step.end_ns <= answer_.window.to_ns) {
      const Source source = core.has_hardware ? kHardware : kOther;
      const auto length_ns = static_cast<float>(step.end_ns - core.begin_ns);
      const float value = metric_ == BusyMap::Metric::kEvents
                              ? static_cast<float>(step.events)
                              : static_cast<float>(step.covered_ns[source]) / length_ns;
      const size_t column = axis_.ColumnOf(*step.number, *matrix_);
      axis_.Extend(column, core.begin_ns, step.end_ns);
      matrix_->Put(row_of_[stream], column, value);
    }
    core.begin_ns = std::max(core.begin_ns, step.end_ns);
    core.stretches.pop_front();
  }
}

absl::Status StepBusyMap::Finish(ExportSummary& summary) {
  finder_->Finish(closed_);
  NumberSteps();
  for (uint32_t stream = 0; stream < cores_.size(); ++stream) {
    if (row_of_[stream] != kNoHeatRow) Settle(stream, UINT64_MAX - 1);
  }
  answer_.is_complete = summary.counts.unreadable_chunks == 0;
  answer_.steps =
      steps_->boundaries() > 0 ? axis_.Describe({}, "barrier") : HeatSteps{.source = "barrier"};
  answer_.window.columns = static_cast<uint32_t>(answer_.steps->first.size());
  if (answer_.window.columns == 0 || !matrix_->HasValues()) {
    answer_.reason =
        "there are no steps: no barrier (enc_barrier) of two ranks or more was found; choose "
        "columns by time";
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
