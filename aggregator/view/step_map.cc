// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/step_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "aggregator/view/lateness_map.h"
#include "lib/base/time_units.h"
#include "lib/trace/rank_evidence.h"

namespace neurontrace {
namespace {

// The difference of two lengths, which may be negative.
float DifferenceNs(uint64_t length_ns, uint64_t median_ns) {
  return static_cast<float>(static_cast<int64_t>(length_ns - median_ns));
}

// Returns how far the length can be from the truth: the host's clock cancels out.
std::optional<uint64_t> LengthBoundNs(const BarrierSteps::Left& left,
                                      const CollectiveMember& arrival) {
  return RecordBounds::ForOrder(left.bound, arrival.bound);
}

}  // namespace

absl::Status StepMap::Begin(const TimelineHeader& header) {
  header_ = &header;
  framework_finder_.emplace(header.streams, fields_);
  collective_finder_.emplace(header.streams, fields_, JobFacts(header));
  barrier_steps_.emplace(header.streams.size());
  row_of_ = AddCoreRows(header, answer_.rows);
  matrix_.emplace(answer_.rows.size(), answer_.window.columns, /*has_bounds=*/true);
  FindWorkers(header);
  return absl::OkStatus();
}

void StepMap::FindWorkers(const TimelineHeader& header) {
  std::map<Job, size_t> jobs;
  for (size_t stream = 0; stream < header.streams.size(); ++stream) {
    if (row_of_[stream] == kNoHeatRow) continue;
    const StreamDescription& about = header.streams[stream].description;
    const WorkerIdentity& identity = about.identity.worker;
    const auto [known, is_new] =
        worker_of_.try_emplace(WorkerKey(identity.instance_id, identity.pid), workers_.size());
    if (is_new) {
      const RankEvidence* rank = BestEvidence(about.evidence);
      const Job job(about.job, rank == nullptr ? 0 : rank->world_size);
      workers_.push_back(
          {.identity = &identity, .job = jobs.try_emplace(job, jobs.size()).first->second});
    }
    Worker& worker = workers_[known->second];
    worker.is_ambiguous |= *worker.identity != identity;
    worker.rows.push_back(row_of_[stream]);
  }
}

// Steps without executions are all that is needed, so that the finder is given none.
absl::Status StepMap::Write(const TimelineBatch& batch) {
  framework_finder_->Take(batch, {}, found_);
  AddFrameworkSteps();
  collective_finder_->Take(batch, closed_);
  AddBarriers();
  return absl::OkStatus();
}

void StepMap::AddFrameworkSteps() {
  for (const Step& step : found_) {
    // Without its end its length is not known.
    if (step.is_open) continue;
    const StreamDescription& about = header_->streams[step.stream].description;
    const auto worker =
        worker_of_.find(WorkerKey(about.identity.worker.instance_id, step.process_id));
    if (worker == worker_of_.end() || workers_[worker->second].is_ambiguous) {
      ++steps_unplaced_;
    } else if (framework_steps_.size() >= framework_steps_max_) {
      ++steps_beyond_;
    } else {
      framework_steps_.push_back({.worker = worker->second,
                                  .number = step.number,
                                  .start_ns = step.start_ns,
                                  .end_ns = step.end_ns,
                                  .has_own_time = about.has_own_time()});
    }
  }
  found_.clear();
}

void StepMap::AddBarriers() {
  for (const Collective& collective : closed_) {
    if (BarrierSteps::IsBoundary(collective)) AddBarrier(collective);
  }
  closed_.clear();
}

// Compares only cores that left the same barrier last: a core that missed one, because its events
// were lost, or one whose group met in between, has another stretch behind it.
void StepMap::AddBarrier(const Collective& barrier) {
  lengths_.clear();
  for (const CollectiveMember& member : barrier.members) {
    const BarrierSteps::Left& left = barrier_steps_->left(member.stream);
    if (row_of_[member.stream] == kNoHeatRow || left.barrier == 0) continue;
    if (member.start_ns < left.left_ns) continue;
    // Barriers between these two may not have been read.
    if (!sample_.HasWhole(left.left_ns, member.start_ns)) continue;
    lengths_.push_back({left.barrier, member.start_ns - left.left_ns, &member});
  }
  std::sort(lengths_.begin(), lengths_.end(), [](const BarrierStep& a, const BarrierStep& b) {
    return std::pair(a.since, a.length_ns) < std::pair(b.since, b.length_ns);
  });
  const uint64_t number = barrier_steps_->NumberOf(barrier);
  for (auto begin = lengths_.cbegin(); begin != lengths_.cend();) {
    const auto end = std::find_if(begin, lengths_.cend(), [begin](const BarrierStep& step) {
      return step.since != begin->since;
    });
    if (end - begin >= 2) Compare(number, begin, end);
    begin = end;
  }
  barrier_steps_->Advance(barrier);
}

void StepMap::Compare(uint64_t number, std::vector<BarrierStep>::const_iterator begin,
                      std::vector<BarrierStep>::const_iterator end) {
  // The earlier of the two in the middle, as for collectives.
  const BarrierStep& median = *(begin + (end - begin - 1) / 2);
  const auto median_bound_ns =
      LengthBoundNs(barrier_steps_->left(median.member->stream), *median.member);
  for (auto step = begin; step != end; ++step) {
    const BarrierSteps::Left& left = barrier_steps_->left(step->member->stream);
    const auto bound_ns = LengthBoundNs(left, *step->member);
    const float difference = DifferenceNs(step->length_ns, median.length_ns);
    const float bound = bound_ns && median_bound_ns
                            ? static_cast<float>(AddSaturating(*bound_ns, *median_bound_ns))
                            : std::numeric_limits<float>::quiet_NaN();
    const uint32_t row = row_of_[step->member->stream];
    const uint64_t arrival_ns = step->member->start_ns;
    if (by_ == By::kTime) {
      matrix_->PutStretch(row, answer_.window, left.left_ns, arrival_ns, difference, bound);
    } else {
      const size_t column = axis_.ColumnOf(number, *matrix_);
      axis_.Extend(column, left.left_ns, arrival_ns);
      matrix_->Put(row, column, difference, bound);
    }
  }
}

bool StepMap::UseFrameworkSteps() {
  // By job and number. Sorted, so that each list is sorted once and looked up by its key.
  std::map<std::pair<size_t, uint64_t>, std::vector<uint64_t>> lengths;
  std::vector<uint64_t> numbers;
  for (const FrameworkStep& step : framework_steps_) {
    lengths[{workers_[step.worker].job, step.number}].push_back(step.end_ns - step.start_ns);
    numbers.push_back(step.number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  bool can_compare = false;
  for (auto& [key, of_step] : lengths) {
    std::sort(of_step.begin(), of_step.end());
    can_compare |= of_step.size() >= 2;
  }
  if (!can_compare) return false;
  matrix_.emplace(answer_.rows.size(), answer_.window.columns, /*has_bounds=*/true);
  axis_.Clear();
  for (const FrameworkStep& step : framework_steps_) {
    const std::vector<uint64_t>& of_step = lengths[{workers_[step.worker].job, step.number}];
    const size_t index = static_cast<size_t>(
        std::lower_bound(numbers.begin(), numbers.end(), step.number) - numbers.begin());
    const size_t column = by_ == By::kStep ? axis_.ColumnOf(index, *matrix_) : 0;
    if (by_ == By::kStep && !step.has_own_time) axis_.Extend(column, step.start_ns, step.end_ns);
    if (of_step.size() < 2) continue;
    const float difference =
        DifferenceNs(step.end_ns - step.start_ns, of_step[(of_step.size() - 1) / 2]);
    for (const uint32_t row : workers_[step.worker].rows) {
      if (by_ == By::kStep) {
        matrix_->Put(row, column, difference, 0);
      } else if (!step.has_own_time) {
        matrix_->PutStretch(row, answer_.window, step.start_ns, step.end_ns, difference, 0);
      }
    }
  }
  if (by_ == By::kStep) answer_.steps = axis_.Describe(numbers, "framework");
  return true;
}

void StepMap::AddWarnings() {
  if (!sample_.is_all()) answer_.warnings.push_back(sample_.Describe());
  if (steps_unplaced_ > 0) {
    answer_.warnings.push_back(fmt::format(
        "{} steps of frameworks are of no worker of the capture, or of one of several with the "
        "same process id",
        steps_unplaced_));
  }
  if (steps_beyond_ > 0) {
    answer_.warnings.push_back(
        fmt::format("{} steps of frameworks were left out: one answer has {}", steps_beyond_,
                    framework_steps_max_));
  }
}

absl::Status StepMap::Finish(ExportSummary& summary) {
  framework_finder_->Finish(found_);
  AddFrameworkSteps();
  collective_finder_->Finish(closed_);
  AddBarriers();
  header_ = nullptr;
  answer_.is_complete = summary.counts.unreadable_chunks == 0 && sample_.is_all();
  if (!UseFrameworkSteps() && by_ == By::kStep) answer_.steps = axis_.Describe({}, "barrier");
  if (answer_.steps) answer_.window.columns = static_cast<uint32_t>(answer_.steps->first.size());
  AddWarnings();
  if (answer_.window.columns == 0 || !matrix_->HasValues()) {
    answer_.reason = fmt::format(
        "there are no steps to compare: no two workers have a framework's step (ProfilerStep#N or "
        "step_num) of the same number, and no two ranks have two barriers (enc_barrier) in common; "
        "{} barriers were found",
        barrier_steps_->boundaries());
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
