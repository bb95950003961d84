// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/annotation_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace neurontrace {
namespace {

// ShapeCache reads views up to this far beyond their ends.
constexpr size_t kShapePadding = 8;

// The name of an attribute, with that padding.
template <size_t kSize>
struct PaddedKey {
  char text[kSize + kShapePadding] = {};
  size_t size = kSize - 1;
  constexpr PaddedKey(const char (&name)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy(name, name + kSize, text);
  }
  constexpr std::string_view view() const { return {text, size}; }
};
constexpr PaddedKey kName("name");
constexpr PaddedKey kDomain("domain");
constexpr PaddedKey kCategoryId("category_id");
constexpr PaddedKey kPayload("payload");
constexpr PaddedKey kPayloadUnknown("payload_unknown");
constexpr PaddedKey kColor("color");
constexpr PaddedKey kNameCut("name_cut");

}  // namespace

AnnotationStream::AnnotationStream(const CaptureId& capture_id, StreamIdentity identity,
                                   uint64_t ranges_before, const Clock& clock, ChunkSink& sink,
                                   AgentSourceMetrics& metrics)
    : ranges_before_(ranges_before),
      metrics_(metrics),
      writer_(capture_id, std::move(identity), clock, sink, metrics) {}

// Positions are numbers of this stream alone: what was read of the rings cannot be read again.
void AnnotationStream::Resume(const StreamCursor& cursor) {
  writer_.Resume(cursor);
  // A record within which a chunk was closed is behind the cursor's position.
  next_position_ = std::max<uint64_t>(1, cursor.source_position + (cursor.source_skip > 0 ? 1 : 0));
  if (cursor.ended) return;
  AddLoss(LossPlace::kAgentQueue, LossReason::kUnknown,
          "annotations that were not durable when the agent ended");
}

void AnnotationStream::AddBegin(const ReadAnnotation& read, const AnnotatedRange& range) {
  Append(read, Phase::kBegin, range.event_type, range.number);
}

void AnnotationStream::AddEnd(const ReadAnnotation& read,
                              const std::optional<AnnotatedRange>& range) {
  if (range && range->number > ranges_before_) {
    return Append(read, Phase::kEnd, range->event_type, range->number);
  }
  AgentSourceMetrics::Add(metrics_.annotation_ends_unmatched);
  writer_.AddRemark(NextPosition(), RemarkKind::kEndWithoutBegin,
                    "an annotated range that began before the recording, or whose begin was lost");
}

void AnnotationStream::AddMark(const ReadAnnotation& read) {
  Append(read, Phase::kInstant, read.category.empty() ? kAnnotationEventType : read.category, 0);
}

void AnnotationStream::Append(const ReadAnnotation& read, Phase phase, std::string_view event_type,
                              uint64_t number) {
  const AnnotationRecord& record = read.record;
  event_type_.assign(event_type);
  event_type_.append(kShapePadding, '\0');
  keys_.clear();
  values_.clear();
  const auto add = [this](const auto& key, ValueType type, KeyScope scope, AttributeValue value) {
    keys_.push_back({key.view(), type, scope});
    values_.push_back(value);
  };
  std::array<char, 16> color{};
  // An end has the attributes of its begin.
  if (phase != Phase::kEnd) {
    add(kName, ValueType::kString, KeyScope::kTop, {.text = read.message});
    if (!read.domain.empty()) {
      add(kDomain, ValueType::kString, KeyScope::kData, {.text = read.domain});
    }
    if (record.category != 0) {
      add(kCategoryId, ValueType::kUint, KeyScope::kData, {.bits = record.category});
    }
    switch (static_cast<AnnotationPayload>(record.payload_type)) {
      case AnnotationPayload::kUint:
        add(kPayload, ValueType::kUint, KeyScope::kData, {.bits = record.payload});
        break;
      case AnnotationPayload::kInt:
        add(kPayload, static_cast<int64_t>(record.payload) < 0 ? ValueType::kInt : ValueType::kUint,
            KeyScope::kData, {.bits = record.payload});
        break;
      case AnnotationPayload::kDouble:
        add(kPayload, ValueType::kDouble, KeyScope::kData, {.bits = record.payload});
        break;
      default:
        break;
    }
    if ((record.flags & kAnnotationFlagPayloadUnknown) != 0) {
      add(kPayloadUnknown, ValueType::kBool, KeyScope::kData, {.bits = 1});
    }
    if ((record.flags & kAnnotationFlagColor) != 0) {
      const auto end = fmt::format_to_n(color.data(), color.size(), "#{:08x}", record.color).out;
      add(kColor, ValueType::kString, KeyScope::kData,
          {.text = {color.data(), static_cast<size_t>(end - color.data())}});
    }
    if ((record.flags & kAnnotationFlagMessageCut) != 0) {
      add(kNameCut, ValueType::kBool, KeyScope::kData, {.bits = 1});
    }
  }
  uint32_t present = FieldBit(Field::kTimestamp) | FieldBit(Field::kThreadId);
  if (phase != Phase::kInstant) present |= FieldBit(Field::kTrackingId);
  const CachedShape& shape =
      shapes_.Find({.event_type = std::string_view(event_type_).substr(0, event_type.size()),
                    .phase = phase,
                    .present = present,
                    .keys = keys_});
  writer_.Append(
      NextPosition(), shape,
      {.timestamp_ns = record.realtime_ns, .tracking_id = number, .thread_id = record.thread_id},
      values_);
  AgentSourceMetrics::Add(metrics_.annotations_recorded);
}

void AnnotationStream::AddDropped(uint64_t records) {
  writer_.AddLoss(NextPosition(), {.place = LossPlace::kTapBuffer,
                                   .reason = LossReason::kFull,
                                   .events = records,
                                   .detail = "annotations that found no room in their process"});
}

void AnnotationStream::AddLoss(LossPlace place, LossReason reason, std::string detail) {
  writer_.AddLoss(
      NextPosition(),
      {.place = place, .reason = reason, .events_unknown = true, .detail = std::move(detail)});
}

void AnnotationStream::Tick() { writer_.Tick(next_position_); }

void AnnotationStream::Flush() { writer_.Flush(next_position_); }

void AnnotationStream::End() { writer_.End(next_position_); }

}  // namespace neurontrace
