// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/execution_gate.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The runtime's key of the number, in the "data" of an event.
constexpr std::string_view kExecutionKey = "exec_id";

uint64_t Distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

}  // namespace

int8_t FindExecution(const Shape& shape) {
  // The index is stored for each shape, as a byte.
  static_assert(limits::kAttributesPerEventMax <= INT8_MAX);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool number = key.type == ValueType::kUint || key.type == ValueType::kString;
    if (number && key.scope == KeyScope::kData && key.name == kExecutionKey) {
      return static_cast<int8_t>(i);
    }
  }
  return -1;
}

std::optional<uint64_t> ReadExecution(const Shape& shape, std::span<const AttributeValue> values,
                                      int8_t index) {
  if (index < 0) return std::nullopt;
  const AttributeValue& value = values[index];
  if (shape.keys[index].type == ValueType::kUint) return value.bits;
  uint64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto parsed = std::from_chars(value.text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

void ExecutionGate::BeginTrace() {
  spans_.clear();
  open_spans_of_bounds_ = 0;
  doubtful_.reset();
  // An open core keeps its newest number, as the capture's end is compared with it.
  if (!open_) newest_.reset();
}

// Small numbers are believed because a runtime counts from the beginning after a restart.
bool ExecutionGate::Near(uint64_t execution) const {
  return execution <= kLeapMax || (newest_ && Distance(execution, *newest_) <= kLeapMax) ||
         (bounds_.first > 0 && Distance(execution, bounds_.first) <= kInFlightMax);
}

std::optional<uint64_t> ExecutionGate::Believed(std::optional<uint64_t> execution) {
  // No runtime counts that far; these values mean "none".
  if (!execution || *execution == UINT64_MAX || *execution == UINT32_MAX) return std::nullopt;
  if (Near(*execution)) {
    doubtful_.reset();
  } else {
    const bool follows = doubtful_ && Distance(*execution, *doubtful_) <= kLeapMax;
    // Doubtful numbers must be near each other, so that random ones are never believed.
    doubts_ = follows ? doubts_ + 1 : 1;
    doubtful_ = execution;
    if (doubts_ < kDoubtsMax) return std::nullopt;
    doubtful_.reset();
    newest_.reset();  // the count stands elsewhere now
  }
  newest_ = std::max(newest_.value_or(0), *execution);
  return execution;
}

bool ExecutionGate::Admit(const Event& event) {
  const std::optional<uint64_t> execution = Believed(event.execution);
  const bool passes = !by_execution_ || Decide(event, execution);
  if (passes && execution) first_ = std::min(first_.value_or(*execution), *execution);
  return passes;
}

bool ExecutionGate::Decide(const Event& event, std::optional<uint64_t> execution) {
  // The core opens with the first number that is not below the first execution.
  if (execution && *execution < bounds_.first) earlier_in_document_ |= !open_;
  if (!open_ && bounds_.first > 0 && execution && *execution >= bounds_.first) {
    open_ = opened_in_document_ = true;
  }
  const bool within = open_ && execution && Within(*execution);
  bool passes = execution ? within : passing();
  // A stop follows its start's decision, so that no span is recorded by half.
  if (event.tracking_id && (event.phase == Phase::kStart || event.phase == Phase::kStop)) {
    const SpanKey key{std::hash<std::string_view>()(event.event_type), *event.tracking_id};
    const auto span = spans_.find(key);
    if (event.phase == Phase::kStop && span != spans_.end()) {
      passes = span->second.passes;
    }
    ForgetSpan(key);
    if (event.phase == Phase::kStart) {
      if (spans_.size() >= kSpansMax) {
        spans_.clear();
        open_spans_of_bounds_ = 0;
      }
      spans_.emplace(key, Span{passes, within});
      if (within) ++open_spans_of_bounds_;
    }
  }
  RecordPast();
  return passes;
}

void ExecutionGate::ForgetSpan(const SpanKey& key) {
  const auto span = spans_.find(key);
  if (span == spans_.end()) return;
  if (span->second.of_bounds) --open_spans_of_bounds_;
  spans_.erase(span);
}

void ExecutionGate::RecordPast() {
  if (past_ || !open_ || bounds_.last == 0 || newest_.value_or(0) <= bounds_.last) return;
  // Open spans of the capture are awaited, unless a much later execution shows that their stops are
  // lost.
  if (open_spans_of_bounds_ > 0 && *newest_ - bounds_.last < kInFlightMax) return;
  past_ = past_in_document_ = true;
}

bool ExecutionGate::TakeLoss(const Loss& loss) {
  if (!by_execution_) return true;
  // A gap at the end of the document that passed the last execution may still contain its events.
  if (past_ && !past_in_document_) return false;
  const bool before = !open_ || opened_in_document_;
  if (!before) return true;
  // A gap precedes the events of its document. An earlier execution in the document shows that the
  // gap cannot contain events of the first one.
  if (bounds_.first == 0 || earlier_in_document_) {
    held_.clear();
  } else {
    AddLoss(loss, held_);
  }
  return false;
}

std::vector<Loss> ExecutionGate::EndDocument() {
  if (earlier_in_document_) held_.clear();
  std::vector<Loss> told;
  if (open_) told.swap(held_);
  earlier_in_document_ = opened_in_document_ = past_in_document_ = false;
  return told;
}

}  // namespace neurontrace
