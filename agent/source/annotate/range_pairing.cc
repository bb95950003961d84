// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/range_pairing.h"

#include "lib/trace/annotation_limits.h"

namespace neurontrace {

void RangePairing::Reset() {
  stacks_.clear();
  ranges_.clear();
  open_ = 0;
}

void RangePairing::SeeRecording(uint32_t recording) {
  if (recording == recording_) return;
  recording_ = recording;
  Reset();
}

void RangePairing::DropFrom(uint16_t level, std::vector<Pushed>& stack) {
  while (!stack.empty() && stack.back().level >= level) {
    stack.pop_back();
    --open_;
  }
}

AnnotatedRange RangePairing::Begin(const ReadAnnotation& read) {
  SeeRecording(read.record.recording);
  AnnotatedRange range{
      .number = ++last_number_,
      .event_type = read.category.empty() ? std::string(kAnnotationEventType) : read.category};
  const bool is_push = read.record.type == static_cast<uint8_t>(AnnotationType::kPush);
  if (is_push) {
    const auto stack = stacks_.find(Stack(read.record.thread_id, read.record.domain));
    if (stack != stacks_.end()) DropFrom(read.record.level, stack->second);
  }
  if (open_ >= limits::kAnnotationRangesOpenMax) return range;
  if (is_push) {
    stacks_[Stack(read.record.thread_id, read.record.domain)].push_back({read.record.level, range});
    ++open_;
  } else if (ranges_.try_emplace(read.record.range_id, range).second) {
    ++open_;
  }
  return range;
}

std::optional<AnnotatedRange> RangePairing::End(const ReadAnnotation& read) {
  SeeRecording(read.record.recording);
  std::optional<AnnotatedRange> range;
  if (read.record.type == static_cast<uint8_t>(AnnotationType::kEnd)) {
    const auto found = ranges_.find(read.record.range_id);
    if (found == ranges_.end()) return range;
    range = std::move(found->second);
    ranges_.erase(found);
    --open_;
    return range;
  }
  const auto stack = stacks_.find(Stack(read.record.thread_id, read.record.domain));
  if (stack == stacks_.end()) return range;
  const uint16_t level = read.record.level;
  if (level == kAnnotationNoLevel) return range;
  DropFrom(static_cast<uint16_t>(level + 1), stack->second);
  if (!stack->second.empty() && stack->second.back().level == level) {
    range = std::move(stack->second.back().range);
    stack->second.pop_back();
    --open_;
  }
  // Threads come and go: an empty stack is not kept.
  if (stack->second.empty()) stacks_.erase(stack);
  return range;
}

}  // namespace neurontrace
