// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/derivation.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Ids of derived arrows count from here, those of framework files from 1 (FrameworkArrows), so that
// no viewer joins the two.
constexpr uint64_t kLinkFlows = uint64_t{1} << 49;

}  // namespace

void DerivedBatch::Clear() {
  flows.clear();
  correlations.clear();
  steps.clear();
  collectives.clear();
  memory.clear();
  new_memories.clear();
  bandwidth.clear();
  answer.reset();
}

Derivation::Derivation(const TimelineHeader& header, bool has_flows, bool has_verdicts)
    : execution_finder_(header.streams, fields_),
      step_finder_(header.streams, fields_),
      collective_finder_(header.streams, fields_),
      hbm_use_(header.streams, fields_),
      bandwidth_(fields_) {
  for (const EarlierPreparation& earlier : header.earlier) {
    execution_finder_.RecordPreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                                        earlier.model_name);
  }
  if (has_flows) links_.emplace(header.streams, header.framework_names);
  if (has_verdicts) insight_.emplace(header);
}

// The first pass sorts the records by what is derived from them; then each finder takes its own.
// Arrows and collectives are found in the first pass, because they refer to places in the batch.
void Derivation::Take(const TimelineBatch& batch, DerivedBatch& out) {
  for (size_t i = 0; i < batch.records.size(); ++i) {
    TimelineRecord& record = *batch.records[i];
    if (links_) {
      for (const LinkPoint& point : links_->Of(record)) {
        out.flows.push_back({i, kLinkFlows + point.id});
      }
    }
    if (const uint64_t number = TakeRecord(record)) out.correlations.push_back({i, number});
  }
  // Finders close what ended before the batch's end, so that each needs the times even without
  // records.
  for (TimelineBatch* some : {&transfers_, &allocations_, &executing_}) {
    some->begin_ns = batch.begin_ns;
    some->end_ns = batch.end_ns;
  }
  // Executions first, because steps are derived from them.
  executions_.clear();
  execution_finder_.Take(executing_, executions_);
  step_finder_.Take(executing_, executions_, out.steps);
  collective_finder_.CloseBefore(batch.end_ns, out.collectives);
  hbm_use_.Take(allocations_, out.memory);
  bandwidth_.Take(transfers_, out.bandwidth);
  for (TimelineBatch* some : {&transfers_, &allocations_, &executing_}) some->records.clear();
  AddMemories(out);
  if (insight_) insight_->Take(batch);
}

void Derivation::Finish(DerivedBatch& out) {
  executions_.clear();
  execution_finder_.Finish(executions_);
  // The last executions may belong to steps: before these are finished.
  step_finder_.Take({.begin_ns = UINT64_MAX, .end_ns = UINT64_MAX}, executions_, out.steps);
  step_finder_.Finish(out.steps);
  collective_finder_.Finish(out.collectives);
  hbm_use_.Finish(out.memory);
  bandwidth_.Finish(out.bandwidth);
  AddMemories(out);
  if (insight_) out.answer = insight_->Finish();
}

void Derivation::AddMemories(DerivedBatch& out) {
  const auto memories = hbm_use_.memories().subspan(memories_written_);
  out.new_memories.assign(memories.begin(), memories.end());
  memories_written_ += memories.size();
}

std::vector<std::string> Derivation::LinkWarnings() const {
  return links_ ? links_->counts().Warnings() : std::vector<std::string>();
}

// Records outlive the batch lists, which are emptied at the end of Take.
uint64_t Derivation::AddSelected(TimelineRecord& record, const ShapeFields& fields) {
  switch (fields.type) {
    case DerivedType::kCollective:
    case DerivedType::kHostBarrier:
      return collective_finder_.Join(record, fields).value_or(0);
    case DerivedType::kCopyIn:
    case DerivedType::kCopyOut:
      transfers_.records.push_back(&record);
      return 0;
    case DerivedType::kAllocate:
    case DerivedType::kDeallocate:
      allocations_.records.push_back(&record);
      return 0;
    case DerivedType::kPrepare:
    case DerivedType::kRunning:
    case DerivedType::kExecute:
    case DerivedType::kFramework:
      executing_.records.push_back(&record);
      return 0;
    case DerivedType::kOther:
    case DerivedType::kPost:
    case DerivedType::kDeviceBarrier:
    case DerivedType::kTensorTransfer:
    case DerivedType::kTensorMemory:
    case DerivedType::kDeviceFault:
      break;
  }
  return 0;
}

}  // namespace neurontrace
