// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/executions.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {

// Records are in the order of time, so a preparation precedes its execution unless the clocks
// differ.
void ExecutionFinder::Take(const TimelineBatch& batch, std::vector<Execution>& done) {
  const auto first = static_cast<ptrdiff_t>(done.size());
  for (const TimelineRecord* record : batch.records) {
    if (record->kind != RecordKind::kSpan) continue;
    const ShapeFields& fields = fields_.Of(*record->shape);
    if (fields.type == DerivedType::kPrepare) RecordPreparation(*record, fields);
    if (fields.type == DerivedType::kRunning) AddDevice(*record, fields, done);
    if (fields.type == DerivedType::kExecute) AddRuntime(*record, fields, done);
  }
  CloseBefore(batch.end_ns, done);
  // CloseBefore iterates over a hash table, whose order differs from run to run.
  std::sort(done.begin() + first, done.end(), [](const Execution& a, const Execution& b) {
    return std::tuple(a.end_ns, a.stream, a.source, a.number) <
           std::tuple(b.end_ns, b.stream, b.source, b.number);
  });
}

// The same as Take, without a time that limits it.
void ExecutionFinder::Finish(std::vector<Execution>& done) {
  const auto first = static_cast<ptrdiff_t>(done.size());
  CloseBefore(UINT64_MAX, done);
  std::sort(done.begin() + first, done.end(), [](const Execution& a, const Execution& b) {
    return std::tuple(a.end_ns, a.stream, a.number) < std::tuple(b.end_ns, b.stream, b.number);
  });
}

// A preparation whose start is lost has no time to measure from.
void ExecutionFinder::RecordPreparation(const TimelineRecord& record, const ShapeFields& fields) {
  const auto exec_id = StartNumber(record, fields, DerivedField::kExecId);
  if (!exec_id || (record.flags & kStartLost) != 0) return;
  RecordPreparation(record.stream, *exec_id, record.start_ns,
                    StartText(record, fields, DerivedField::kModelName));
}

// Also called for preparations that were recorded before the window that is read.
void ExecutionFinder::RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                                        std::string_view model_name) {
  models_.Record(stream, exec_id, model_name);
  auto& slots = prepared_[stream];
  // A ring by exec_id, as in ModelNames: ids increase, so that old ones are replaced.
  if (slots.empty()) slots.resize(kPreparedPerStream);
  slots[exec_id % kPreparedPerStream] = {exec_id, start_ns};
}

Execution ExecutionFinder::Begin(const TimelineRecord& record, const ShapeFields& fields,
                                 ExecutionSource source) {
  Numbers& numbers = numbers_[record.stream];
  Execution execution{.stream = record.stream,
                      .source = source,
                      .exec_id = StartNumber(record, fields, DerivedField::kExecId),
                      .start_ns = record.start_ns,
                      .end_ns = record.end_ns,
                      .busy_ns = record.end_ns - record.start_ns,
                      .model_id = StartNumber(record, fields, DerivedField::kModelId),
                      .is_open = (record.flags & kOpen) != 0,
                      .bound = bounds_.Keep(record)};
  execution.number = source == ExecutionSource::kDevice ? numbers.device++ : numbers.runtime++;
  execution.model_name = KeptName(StartText(record, fields, DerivedField::kModelName));
  // Looked up now, because later preparations take the place of this one.
  if (execution.exec_id) RecordRuntimeFacts(execution);
  return execution;
}

// The bound of the execution stays that of its first part, which determines start_ns.
void ExecutionFinder::Join(const TimelineRecord& record, Pending& pending) {
  Execution& execution = pending.execution;
  ++execution.parts;
  // Parts come in the order of their starts, so this suffices for the length of the union.
  const uint64_t from_ns = std::max(record.start_ns, pending.covered_until_ns);
  if (record.end_ns > from_ns) execution.busy_ns += record.end_ns - from_ns;
  pending.covered_until_ns = std::max(pending.covered_until_ns, record.end_ns);
  execution.end_ns = std::max(execution.end_ns, record.end_ns);
  execution.is_open |= (record.flags & kOpen) != 0;
}

// A span joins the pending execution with its exec_id if it is near enough. Otherwise that one is
// complete, and the span begins another.
void ExecutionFinder::AddDevice(const TimelineRecord& record, const ShapeFields& fields,
                                std::vector<Execution>& done) {
  if ((record.flags & kStartLost) != 0) {
    ++counts_.start_lost;
    return;
  }
  const auto exec_id = StartNumber(record, fields, DerivedField::kExecId);
  if (!exec_id) {
    Emit(Begin(record, fields, ExecutionSource::kDevice), done);
    return;
  }
  const Key key(record.stream, *exec_id);
  const auto known = pending_.find(key);
  if (known != pending_.end()) {
    // By the device's clock the physical cores begin and end nearly together; a later use of the
    // exec_id is much further away than kJoinNs.
    if (record.start_ns <= known->second.execution.end_ns ||
        record.start_ns - known->second.execution.end_ns <= kJoinNs) {
      Join(record, known->second);
      return;
    }
    Emit(std::move(known->second.execution), done);
    pending_.erase(known);
  }
  Execution execution = Begin(record, fields, ExecutionSource::kDevice);
  // Memory stays bounded, at the price of one execution for each physical core.
  if (pending_.size() >= kPendingMax) {
    ++counts_.not_joined;
    Emit(std::move(execution), done);
    return;
  }
  pending_.emplace(key, Pending{std::move(execution), record.end_ns});
}

void ExecutionFinder::AddRuntime(const TimelineRecord& record, const ShapeFields& fields,
                                 std::vector<Execution>& done) {
  // Not counted: without its start, the host's call shows nothing of the device.
  if ((record.flags & kStartLost) != 0) return;
  Emit(Begin(record, fields, ExecutionSource::kRuntime), done);
}

// Both facts are looked up by exec_id, in rings that later ids overwrite: a slot counts only if it
// still has this id.
void ExecutionFinder::RecordRuntimeFacts(Execution& execution) {
  if (execution.model_name.empty()) {
    execution.model_name = models_.Find(execution.stream, *execution.exec_id);
  }
  const auto slots = prepared_.find(execution.stream);
  if (slots == prepared_.end()) return;
  const Prepared& slot = slots->second[*execution.exec_id % kPreparedPerStream];
  if (slot.start_ns != 0 && slot.exec_id == *execution.exec_id) {
    execution.prepared_ns = slot.start_ns;
  }
}

void ExecutionFinder::Emit(Execution&& execution, std::vector<Execution>& done) {
  // By the clocks, the preparation can come after the start: then it was not known in Begin.
  if (execution.exec_id && execution.model_name.empty()) {
    execution.model_name = models_.Find(execution.stream, *execution.exec_id);
  }
  ++(execution.source == ExecutionSource::kDevice ? counts_.device : counts_.runtime);
  if (execution.is_open) ++counts_.open;
  done.push_back(std::move(execution));
}

// An execution that ended no more than kJoinNs before `time_ns` can still be joined.
void ExecutionFinder::CloseBefore(uint64_t time_ns, std::vector<Execution>& done) {
  absl::erase_if(pending_, [&](auto& entry) {
    Execution& execution = entry.second.execution;
    if (time_ns != UINT64_MAX &&
        (execution.end_ns >= time_ns || time_ns - execution.end_ns <= kJoinNs)) {
      return false;
    }
    Emit(std::move(execution), done);
    return true;
  });
}

}  // namespace neurontrace
