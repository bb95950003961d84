// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/segment_finder.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>
#include <vector>

namespace neurontrace {
namespace {

using insight_rule::kGroupsKept;
using insight_rule::kOperationsKept;
using insight_rule::kTransferBlock;
using insight_rule::kTransferBlockMin;
using insight_rule::kTransferForgetting;

constexpr uint64_t kShortMeetingNs = 250'000'000;
// Operations for which room is made at once.
constexpr size_t kOperationsGrowth = 4;

size_t MetBucket(uint64_t length_ns) {
  if (length_ns <= kShortMeetingNs) return 0;
  const auto times = (length_ns - 1) / kShortMeetingNs;
  return std::min<size_t>(std::bit_width(times),
                          std::tuple_size_v<decltype(CoreHistory::met_lengths)> - 1);
}

}  // namespace

void CoreOperation::Add(float length_ns) {
  if (total > 0 && total % kTransferBlock == 0) {
    if (total > kTransferBlock) {
      const float forgotten = earlier_least * static_cast<float>(kTransferForgetting);
      earlier_least = earlier_least == 0 ? previous_least : std::min(forgotten, previous_least);
    }
    previous_least = current_least;
  }
  current_least = total % kTransferBlock == 0 ? length_ns : std::min(current_least, length_ns);
  ++total;
  mean += (length_ns - mean) / static_cast<float>(std::min(total, kTransferBlock));
}

double CoreOperation::recent_least() const {
  const uint32_t in_block = total == 0 ? 0 : (total - 1) % kTransferBlock + 1;
  return in_block >= kTransferBlockMin || total <= kTransferBlock ? current_least : previous_least;
}

void SegmentFinder::Take(const InsightEvent& event) {
  if (event.end_ns < event.start_ns) return;
  history_.last_event_ns = std::max(history_.last_event_ns, event.end_ns);
  if (event.is_open) return TakeOpen(event);
  CloseOpen(event);
  switch (event.kind) {
    case InsightClass::kRun:
      return TakeRun(event);
    case InsightClass::kExecute:
      return TakeCall(event);
    case InsightClass::kPrepare:
      prepares_.Add(event.start_ns, event.end_ns);
      prepared_exec_id_ = event.exec_id;
      prepared_model_ = FoldModel(event.model);
      return;
    case InsightClass::kPost:
      posts_.Add(event.start_ns, event.end_ns);
      return;
    case InsightClass::kCollective:
    case InsightClass::kDeviceBarrier:
    case InsightClass::kHostBarrier:
      return TakeMeeting(event);
    case InsightClass::kTransferIo:
      io_.Add(event.start_ns, event.end_ns);
      either_.Add(event.start_ns, event.end_ns);
      return;
    case InsightClass::kMemory:
      either_.Add(event.start_ns, event.end_ns);
      return;
    case InsightClass::kError:
      history_.last_error_ns = std::max<uint64_t>(1, event.end_ns);
      return;
  }
}

void SegmentFinder::StartWindow() {
  ContinueWindow();
  history_.window_begin = history_.executions;
}

void SegmentFinder::ContinueWindow() {
  history_.new_begin = history_.executions;
  history_.new_since_ns = history_.kept() == 0 ? 0 : history_.latest(0).end_ns;
  history_.id_disorder = 0;
  history_.without_id = 0;
}

// Without the end of a previous run, an execution is not counted.
void SegmentFinder::StartWindowAfterLoss() {
  StartWindow();
  pending_.previous_end = 0;
  last_end_ = 0;
}

void SegmentFinder::TakeOpen(const InsightEvent& event) {
  OpenSpan* free = nullptr;
  for (OpenSpan& open : history_.open) {
    if (open.is_used && open.kind == event.kind && open.start_ns == event.start_ns) {
      open.seen_ns = std::max(open.seen_ns, event.end_ns);
      return;
    }
    if (!open.is_used && free == nullptr) free = &open;
  }
  if (free == nullptr) {
    ++history_.open_dropped;
    return;
  }
  *free = {.kind = event.kind,
           .group = GroupIndex(event.group),
           .is_used = true,
           .start_ns = event.start_ns,
           .seen_ns = event.end_ns,
           .exec_id = event.exec_id,
           .op_id = event.op_id};
}

// A later event of the same kind shows that an open one has ended, even if its stop was lost.
void SegmentFinder::CloseOpen(const InsightEvent& event) {
  for (OpenSpan& open : history_.open) {
    if (open.is_used && open.kind == event.kind && open.start_ns <= event.start_ns)
      open.is_used = false;
  }
}

void SegmentFinder::BeginPending(const InsightEvent& event, uint64_t start_ns) {
  pending_ = {.is_used = true,
              .exec_id = event.exec_id != 0 ? event.exec_id : prepared_exec_id_,
              .model = event.model != 0 ? FoldModel(event.model) : prepared_model_,
              .collectives = collectives_,
              .previous_end = last_end_,
              .start = std::max(start_ns, last_end_),
              .end = event.end_ns,
              .met_ns = 0,
              .io_ns = io_.LengthFrom(last_end_),
              .memory_ns = either_.LengthFrom(last_end_)};
  pending_.memory_ns -= std::min(pending_.memory_ns, pending_.io_ns);
  pending_.met_ns = met_.LengthFrom(pending_.start);
  collectives_ = 0;
  met_.Clear();
  io_.Clear();
  either_.Clear();
  last_end_ = event.end_ns;
}

void SegmentFinder::TakeRun(const InsightEvent& event) {
  has_runs_ = true;
  // The other physical core of the same logical one.
  const bool is_same = event.exec_id == 0 || event.exec_id == pending_.exec_id;
  if (pending_.is_used && is_same && event.start_ns < pending_.end) {
    pending_.start = std::max(std::min(pending_.start, event.start_ns), pending_.previous_end);
    pending_.end = std::max(pending_.end, event.end_ns);
    last_end_ = std::max(last_end_, pending_.end);
    return;
  }
  Complete();
  BeginPending(event, event.start_ns);
}

void SegmentFinder::TakeCall(const InsightEvent& event) {
  executes_.Add(event.start_ns, event.end_ns);
  if (has_runs_) {
    if (pending_.is_used && pending_.end <= event.end_ns) Complete();
    return;
  }
  // Nothing of the device was recorded: the call is the execution, with an empty run at its end.
  BeginPending(event, event.end_ns);
  Complete();
}

void SegmentFinder::TakeMeeting(const InsightEvent& event) {
  const uint64_t length = event.end_ns - event.start_ns;
  ++history_.met_lengths[MetBucket(length)];
  AddOperation(event);
  if (event.kind == InsightClass::kHostBarrier) {
    barriers_.Add(event.start_ns, event.end_ns);
  } else {
    met_.Add(event.start_ns, event.end_ns);
  }
  if (event.kind == InsightClass::kCollective) ++collectives_;
}

uint8_t SegmentFinder::GroupIndex(uint64_t group) {
  for (uint32_t i = 0; i < history_.group_count; ++i) {
    if (history_.groups[i] == group) return static_cast<uint8_t>(i);
  }
  if (history_.group_count == kGroupsKept) {
    ++history_.groups_dropped;
    return kGroupsKept;
  }
  history_.groups[history_.group_count] = group;
  return static_cast<uint8_t>(history_.group_count++);
}

void SegmentFinder::AddOperation(const InsightEvent& event) {
  const uint8_t group = GroupIndex(event.group);
  if (group == kGroupsKept) return;
  const auto op = static_cast<uint32_t>(event.op_id);
  const uint32_t model = FoldModel(event.model);
  CoreOperation* found = nullptr;
  // Operations repeat in their order, so the search nearly always ends at once.
  std::vector<CoreOperation>& operations = history_.operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    const size_t at = (next_operation_ + i) % operations.size();
    CoreOperation& known = operations[at];
    if (known.op == op && known.kind == event.kind && known.group == group &&
        known.model == model) {
      found = &known;
      next_operation_ = static_cast<uint32_t>(at + 1);
      break;
    }
  }
  if (found == nullptr) {
    if (operations.size() == kOperationsKept) {
      ++history_.operations_dropped;
      return;
    }
    if (operations.size() == operations.capacity())
      operations.reserve(std::min(kOperationsKept, operations.size() + kOperationsGrowth));
    found = &operations.emplace_back(
        CoreOperation{.op = op, .model = model, .kind = event.kind, .group = group});
    next_operation_ = 0;
  }
  found->last_exec_id = event.exec_id != 0 ? event.exec_id : prepared_exec_id_;
  found->Add(static_cast<float>(event.end_ns - event.start_ns));
}

void SegmentFinder::DivideHostTime(uint64_t begin, uint64_t end, CoreExecution& execution) const {
  // In the order of precedence; each moment belongs to the first that covers it.
  const std::array<std::pair<const RecentCalls*, float*>, 4> kinds = {
      {{&barriers_, &execution.met},
       {&prepares_, &execution.pre},
       {&posts_, &execution.post},
       {&executes_, &execution.submit}}};
  std::array<uint64_t, 34> cuts;
  size_t count = 0;
  cuts[count++] = begin;
  cuts[count++] = end;
  for (const auto& [recent, segment] : kinds) {
    for (const Interval& call : recent->calls) {
      if (call.start > begin && call.start < end) cuts[count++] = call.start;
      if (call.end > begin && call.end < end) cuts[count++] = call.end;
    }
  }
  std::sort(cuts.begin(), cuts.begin() + count);
  for (size_t i = 0; i + 1 < count; ++i) {
    float* target = &execution.gap;
    for (const auto& [recent, segment] : kinds) {
      const bool covers =
          std::any_of(recent->calls.begin(), recent->calls.end(), [&](const Interval& call) {
            return call.start <= cuts[i] && call.end >= cuts[i + 1] && call.end > call.start;
          });
      if (!covers) continue;
      target = segment;
      break;
    }
    *target += static_cast<float>(cuts[i + 1] - cuts[i]);
  }
}

void SegmentFinder::Complete() {
  if (!pending_.is_used) return;
  const Pending run = pending_;
  pending_ = {};
  const uint64_t previous_id = std::exchange(last_exec_id_, run.exec_id);
  if (run.previous_end == 0 || run.end <= run.previous_end) return;
  CoreExecution execution = {.exec_id = run.exec_id,
                             .end_ns = run.end,
                             .model = run.model,
                             .collectives = run.collectives};
  DivideHostTime(run.previous_end, run.start, execution);
  const uint64_t met = std::min(run.met_ns, run.end - run.start);
  execution.device = static_cast<float>(run.end - run.start - met);
  execution.met += static_cast<float>(met);
  execution.io = std::min(static_cast<float>(run.io_ns), execution.gap);
  execution.memory = std::min(static_cast<float>(run.memory_ns), execution.gap - execution.io);
  if (run.exec_id == 0) {
    ++history_.without_id;
  } else if (run.exec_id <= previous_id) {
    ++history_.id_disorder;
  }
  history_.ring[history_.executions++ % history_.ring.size()] = execution;
}

}  // namespace neurontrace
