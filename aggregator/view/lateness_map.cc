// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/lateness_map.h"

#include <fmt/format.h>

#include <limits>

namespace neurontrace {

CommunicatorFacts JobFacts(const TimelineHeader& header) {
  CommunicatorFacts facts;
  for (const TimelineStream& stream : header.streams) {
    facts.root_comm_ids.push_back(stream.description.job);
  }
  return facts;
}

absl::Status LatenessMap::Begin(const TimelineHeader& header) {
  finder_.emplace(header.streams, fields_, JobFacts(header));
  steps_.emplace(header.streams.size());
  row_of_ = AddCoreRows(header, answer_.rows);
  matrix_.emplace(answer_.rows.size(), answer_.window.columns, /*has_bounds=*/true);
  return absl::OkStatus();
}

absl::Status LatenessMap::Write(const TimelineBatch& batch) {
  finder_->Take(batch, closed_);
  AddClosed();
  return absl::OkStatus();
}

void LatenessMap::AddClosed() {
  for (const Collective& collective : closed_) Add(collective);
  closed_.clear();
}

// Collectives come nearly in the order of their ends, so that a device's collective is in the step
// that the next barrier ends.
void LatenessMap::Add(const Collective& collective) {
  // If its members cannot have met, nobody waited for the last one.
  if (collective.members.size() < 2 || collective.is_disjoint()) return;
  // Of others some ranks' chunks were not read.
  if (!sample_.HasWhole(collective.start_ns(), collective.last_arrival_ns())) return;
  std::optional<size_t> column;
  if (by_ == By::kStep) {
    column = axis_.ColumnOf(steps_->NumberOf(collective), *matrix_);
    axis_.Extend(*column, collective.start_ns(), collective.last_arrival_ns());
  }
  const CollectiveMember& median = collective.median();
  for (const CollectiveMember& member : collective.members) {
    const uint32_t row = row_of_[member.stream];
    if (row == kNoHeatRow) continue;
    if (!column && !answer_.window.Contains(member.start_ns)) continue;
    const auto bound_ns = RecordBounds::ForOrder(median.bound, member.bound);
    matrix_->Put(
        row, column ? *column : answer_.window.ColumnOf(member.start_ns),
        static_cast<float>(static_cast<int64_t>(member.start_ns - median.start_ns)),
        bound_ns ? static_cast<float>(*bound_ns) : std::numeric_limits<float>::quiet_NaN());
  }
  if (BarrierSteps::IsBoundary(collective)) steps_->Advance(collective);
}

std::string LatenessMap::ExplainEmpty() const {
  if (by_ == By::kStep && steps_->boundaries() == 0) {
    return "there are no steps: no barrier (enc_barrier) of two ranks or more was found; choose "
           "columns by time";
  }
  const CollectiveCounts counts = finder_->counts();
  return fmt::format(
      "no collective or barrier of two ranks or more was found: {} were of a single rank, {} of "
      "ranks that cannot have met, and {} parts had no number or no beginning",
      counts.single, counts.disjoint, counts.unnumbered + counts.start_lost);
}

absl::Status LatenessMap::Finish(ExportSummary& summary) {
  finder_->Finish(closed_);
  AddClosed();
  answer_.is_complete = summary.counts.unreadable_chunks == 0 && sample_.is_all();
  if (!sample_.is_all()) answer_.warnings.push_back(sample_.Describe());
  const bool has_steps = steps_->boundaries() > 0;
  if (by_ == By::kStep) {
    answer_.steps = has_steps ? axis_.Describe({}, "barrier") : HeatSteps{.source = "barrier"};
    answer_.window.columns = static_cast<uint32_t>(answer_.steps->first.size());
  }
  if (answer_.window.columns == 0 || !matrix_->HasValues()) answer_.reason = ExplainEmpty();
  return absl::OkStatus();
}

}  // namespace neurontrace
