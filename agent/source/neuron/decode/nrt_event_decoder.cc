// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/decode/nrt_event_decoder.h"

#include <cassert>
#include <cstring>

namespace neurontrace {
namespace {

using ValueKind = LayoutPredictor::ValueKind;

// The keys of an event that have a place of their own; every other one is kNone.
enum class StandardKey : uint8_t {
  kNone,
  kEventType,
  kPhase,
  kId,
  kNcIdx,
  kNcLocalId,
  kTrackingId,
  kThreadId,
  kWorkerGid,
  kData,
  kTimestamp,
  kNrtaSeqId,
};

// Returns whether the text is `name`. Requires that their lengths are equal.
template <size_t N>
bool Is(const char* text, const char (&name)[N]) {
  return std::memcmp(text, name, N - 1) == 0;
}

// Returns which field the key names. Compares by length first, so that a key costs hardly more than
// one comparison.
StandardKey ClassifyKey(std::string_view key) {
  const char* const text = key.data();
  switch (key.size()) {
    case 2:
      return Is(text, "id") ? StandardKey::kId : StandardKey::kNone;
    case 4:
      return Is(text, "data") ? StandardKey::kData : StandardKey::kNone;
    case 5:
      return Is(text, "phase") ? StandardKey::kPhase : StandardKey::kNone;
    case 6:
      return Is(text, "nc_idx") ? StandardKey::kNcIdx : StandardKey::kNone;
    case 9:
      return Is(text, "thread_id") ? StandardKey::kThreadId : StandardKey::kNone;
    case 10:
      if (Is(text, "event_type")) return StandardKey::kEventType;
      return Is(text, "worker_gid") ? StandardKey::kWorkerGid : StandardKey::kNone;
    case 11:
      if (Is(text, "nc_local_id")) return StandardKey::kNcLocalId;
      if (Is(text, "tracking_id")) return StandardKey::kTrackingId;
      return Is(text, "nrta_seq_id") ? StandardKey::kNrtaSeqId : StandardKey::kNone;
    case 12:
      return Is(text, "timestamp_ns") ? StandardKey::kTimestamp : StandardKey::kNone;
    default:
      return StandardKey::kNone;
  }
}

// Reasons for which an event is unfit.
constexpr std::string_view kTooManyAttributes = "the event has more attributes than the limit";
constexpr std::string_view kTextTooLong = "a text exceeds the length limit";
constexpr std::string_view kNotAnObject = "the element is not an object";

}  // namespace

// One pass over the tokens of the index, without a tree of values: the cost is linear in the bytes
// of the document, and memory is that of the index and of one event. nrt_round_trip_test.cc checks
// that every event comes back to the letter.
NrtDecodeOutcome NrtEventDecoder::Decode(char* document, size_t size, uint64_t fetched_ns,
                                         NrtEventSink& sink) {
  outcome_ = {};
  fetched_ns_ = fetched_ns;
  if (const absl::Status status = index_.Build(document, size); !status.ok()) {
    // Nothing can be read without an index: the whole document is lost, in unknown number.
    outcome_.fault = JsonIndex::Fault{0, std::string(status.message())};
    return std::move(outcome_);
  }
  outcome_.repaired_bytes = index_.repaired_bytes();
  layouts_.BeginDocument();
  if (!index_.tokens().empty()) {
    unescaped_.clear();
    // It must never move while views point into it.
    if (unescaped_.capacity() < size && std::memchr(document, '\\', size) != nullptr) {
      unescaped_.reserve(size);
    }
    JsonCursor cursor(document, index_, unescaped_);
    if (!ReadEnvelope(cursor, sink)) outcome_.fault = cursor.fault();
  }
  // If the text itself is broken, that explains better why it ends, unless it was no document
  // before.
  if (index_.fault() && !(outcome_.fault && outcome_.fault->offset < index_.fault()->offset)) {
    outcome_.fault = index_.fault();
  }
  return std::move(outcome_);
}

// The members of the envelope may come in any order, and unknown ones are skipped after a check.
bool NrtEventDecoder::ReadEnvelope(JsonCursor& cursor, NrtEventSink& sink) {
  if (!cursor.ConsumeIf('{')) return cursor.Fail("the document is not an object");
  bool more = !cursor.ConsumeIf('}');
  bool has_events = false;
  while (more) {
    std::string_view key;
    if (!cursor.ReadKey(key)) return false;
    if (key == "events" && cursor.peek() == '[') {
      has_events = true;
      if (!ReadEvents(cursor, sink)) return false;
    } else {
      ValueType type;
      AttributeValue value;
      if (!cursor.ReadValue(type, value)) return false;
      // A list without events may be written as null.
      has_events = has_events || (key == "events" && type == ValueType::kNull);
    }
    if (!cursor.ReadSeparator('}', more)) return false;
  }
  if (!has_events) return cursor.Fail("the document has no list of events");
  return cursor.at_end() || cursor.Fail("unexpected data after the document");
}

// Requires that the current token is the opening bracket of the list. A fault in an event ends the
// list, as the place where the next one begins is not known after it.
bool NrtEventDecoder::ReadEvents(JsonCursor& cursor, NrtEventSink& sink) {
  cursor.Skip();
  bool more = !cursor.ConsumeIf(']');
  while (more) {
    if (cursor.peek() == '{') {
      if (!ReadPredictedEvent(cursor, sink) && !ReadEvent(cursor, sink)) return false;
    } else {
      ValueType type;
      AttributeValue value;
      if (!cursor.ReadValue(type, value)) return false;
      ++outcome_.unfit_events;
      sink.OnUnfitEvent(limits::kNoNcIdx, EventFields{.timestamp_ns = fetched_ns_}, 0,
                        kNotAnObject);
    }
    if (!cursor.ReadSeparator(']', more)) return false;
  }
  return true;
}

// The texts of the event before were only valid during its call, so their memory is used again.
void NrtEventDecoder::BeginEvent() {
  fields_ = {};
  event_type_ = {};
  phase_ = Phase::kOther;
  phase_seen_ = false;
  present_ = 0;
  quoted_ = 0;
  nc_idx_ = limits::kNoNcIdx;
  unfit_ = {};
  key_count_ = 0;
  has_layout_ = prediction_ == Prediction::kOn;
  place_count_ = 0;
  unescaped_.clear();
}

// A layout is a sequence of tokens, too: the same text has the same tokens wherever an event may
// begin. That they are those of the index is checked all the same, because a wrong number would
// lead beyond it.
bool NrtEventDecoder::ReadPredictedEvent(JsonCursor& cursor, NrtEventSink& sink) {
  if (prediction_ == Prediction::kOff) return false;
  const LayoutPredictor::Prediction* const predicted = layouts_.Predict(cursor.text());
  if (predicted == nullptr) return false;
  const bool skipped = cursor.SkipText(predicted->tokens, predicted->bytes);
  assert(skipped);
  if (!skipped) return false;
  ++outcome_.events;
  ++outcome_.predicted_events;
  sink.OnEvent(predicted->event);
  return true;
}

// Requires that the current token is the opening brace.
bool NrtEventDecoder::ReadEvent(JsonCursor& cursor, NrtEventSink& sink) {
  BeginEvent();
  const uint32_t* const first = cursor.token();
  cursor.Skip();
  bool more = !cursor.ConsumeIf('}');
  while (more) {
    std::string_view key;
    if (!cursor.ReadKey(key) || !ReadTopMember(cursor, key) || !cursor.ReadSeparator('}', more)) {
      return false;
    }
  }
  EmitEvent(cursor.TextFrom(first), static_cast<uint32_t>(cursor.token() - first), sink);
  return true;
}

// An event is complete only here: its shape depends on all of its keys.
void NrtEventDecoder::EmitEvent(std::string_view text, uint32_t tokens, NrtEventSink& sink) {
  if ((present_ & FieldBit(Field::kTimestamp)) == 0) {
    has_layout_ = false;  // every event has another time, which is not in its text
    fields_.timestamp_ns = fetched_ns_;
    // The attribute lets exporters mark the time as made up.
    AddAttribute(kTimestampMadeUpKey, KeyScope::kTop, ValueType::kString, {.text = "of the fetch"});
  }
  // Decided at the end, so that the report contains every field that could be read.
  if (!unfit_.empty()) {
    ++outcome_.unfit_events;
    sink.OnUnfitEvent(nc_idx_, fields_, present_, unfit_);
    return;
  }
  ++outcome_.events;
  const CachedShape& shape =
      shapes_.Find({event_type_, phase_, present_, quoted_, std::span(keys_.data(), key_count_)});
  const NrtEvent event{nc_idx_, &shape, fields_, std::span(values_.data(), key_count_)};
  layouts_.SetGeneration(shape.generation);
  if (has_layout_) layouts_.Learn(text, tokens, {places_.data(), place_count_}, event);
  sink.OnEvent(event);
}

// Each field takes the key's value, or leaves it to ReadAttribute.
bool NrtEventDecoder::ReadTopMember(JsonCursor& cursor, std::string_view key) {
  switch (ClassifyKey(key)) {
    case StandardKey::kEventType:
      return ReadEventType(cursor, key);
    case StandardKey::kPhase:
      return ReadPhase(cursor, key);
    case StandardKey::kId:
      return ReadUnsigned(cursor, key, Field::kId, &EventFields::id);
    case StandardKey::kNcIdx:
      return ReadCore(cursor, key);
    case StandardKey::kNcLocalId:
      return ReadUnsigned(cursor, key, Field::kNcLocalId, &EventFields::nc_local_id);
    case StandardKey::kTrackingId:
      return ReadUnsigned(cursor, key, Field::kTrackingId, &EventFields::tracking_id);
    case StandardKey::kThreadId:
      return ReadUnsigned(cursor, key, Field::kThreadId, &EventFields::thread_id);
    case StandardKey::kWorkerGid:
      return ReadWorkerGid(cursor, key);
    case StandardKey::kTimestamp:
      return ReadUnsigned(cursor, key, Field::kTimestamp, &EventFields::timestamp_ns);
    case StandardKey::kNrtaSeqId:
      return ReadUnsigned(cursor, key, Field::kNrtaSeqId, &EventFields::nrta_seq_id);
    case StandardKey::kData:
      // Anything but an object becomes a top-level attribute.
      if (cursor.peek() == '{') return ReadData(cursor);
      return ReadMisfit(cursor, key);
    case StandardKey::kNone:
      break;
  }
  return ReadAttribute(cursor, key, KeyScope::kTop);
}

// A second "data" object adds its members to those of the first.
bool NrtEventDecoder::ReadData(JsonCursor& cursor) {
  cursor.Skip();
  bool more = !cursor.ConsumeIf('}');
  while (more) {
    std::string_view key;
    if (!cursor.ReadKey(key) || !ReadAttribute(cursor, key, KeyScope::kData) ||
        !cursor.ReadSeparator('}', more)) {
      return false;
    }
  }
  return true;
}

// A value that is not canonical, such as "007" or 1.0, is kept as an attribute with its text: a
// column would lose the spelling.
bool NrtEventDecoder::ReadUnsigned(JsonCursor& cursor, std::string_view key, Field field,
                                   uint64_t EventFields::*member) {
  const uint32_t bit = FieldBit(field);
  const char* const at = cursor.text();
  bool in_quotes = false;
  if ((present_ & bit) != 0 || !cursor.ReadUint(fields_.*member, in_quotes)) {
    return ReadMisfit(cursor, key);
  }
  present_ |= bit;
  if (in_quotes) quoted_ |= bit;
  AddPlace(at + in_quotes, ValueKind::kField, static_cast<size_t>(field));
  return true;
}

bool NrtEventDecoder::ReadWorkerGid(JsonCursor& cursor, std::string_view key) {
  const uint32_t bit = FieldBit(Field::kWorkerGid);
  const char* const at = cursor.text();
  bool in_quotes = false;
  if ((present_ & bit) != 0 || !cursor.ReadInt(fields_.worker_gid, in_quotes)) {
    return ReadMisfit(cursor, key);
  }
  present_ |= bit;
  if (in_quotes) quoted_ |= bit;
  AddPlace(at + in_quotes, ValueKind::kWorkerGid, 0);
  return true;
}

bool NrtEventDecoder::ReadCore(JsonCursor& cursor, std::string_view key) {
  const uint32_t bit = FieldBit(Field::kNcIdx);
  const char* const at = cursor.text();
  uint64_t core = 0;
  bool in_quotes = false;
  if ((present_ & bit) != 0 || !cursor.ReadUint(core, in_quotes)) {
    return ReadMisfit(cursor, key);
  }
  if (core >= limits::kCoresPerWorkerMax) {
    // The number is kept as an attribute, which needs its text.
    cursor.GoBackOne();
    return ReadMisfit(cursor, key);
  }
  nc_idx_ = static_cast<uint32_t>(core);
  present_ |= bit;
  if (in_quotes) quoted_ |= bit;
  AddPlace(at + in_quotes, ValueKind::kNcIdx, 0);
  return true;
}

// Other texts than the three phases, and a repeated phase, become attributes.
bool NrtEventDecoder::ReadPhase(JsonCursor& cursor, std::string_view key) {
  if (phase_seen_ || cursor.peek() != '"') return ReadMisfit(cursor, key);
  std::string_view text;
  if (!cursor.PeekString(text)) return false;
  if (text == "start") {
    phase_ = Phase::kStart;
  } else if (text == "stop") {
    phase_ = Phase::kStop;
  } else if (text == "instant") {
    phase_ = Phase::kInstant;
  } else {
    return ReadMisfit(cursor, key);
  }
  phase_seen_ = true;
  cursor.Skip();
  return true;
}

// A type with escapes is decoded; one that has no UTF-8 becomes an attribute.
bool NrtEventDecoder::ReadEventType(JsonCursor& cursor, std::string_view key) {
  // An empty type means none in a shape, so an empty text is kept as an attribute.
  if (!event_type_.empty() || cursor.peek() != '"') {
    return ReadMisfit(cursor, key);
  }
  std::string_view text;
  if (!cursor.PeekString(text)) return false;
  ValueType type = ValueType::kString;
  AttributeValue value{.text = text};
  if (!HasBackslash(text.data(), text.size())) {
    cursor.Skip();
  } else if (!cursor.ReadValue(type, value)) {
    return false;
  }
  if (type != ValueType::kString || value.text.empty()) {
    has_layout_ = false;  // as for ReadMisfit
    AddAttribute(key, KeyScope::kTop, type, value);
    return true;
  }
  if (value.text.size() > limits::kStringBytesMax) unfit_ = kTextTooLong;
  event_type_ = value.text;
  return true;
}

// A key with escapes is decoded into `unescaped_`, as string values are.
bool NrtEventDecoder::ReadAttribute(JsonCursor& cursor, std::string_view key, KeyScope scope) {
  if (HasBackslash(key.data(), key.size()) && !cursor.DecodeKey(key)) return false;
  const char* const at = cursor.text();
  ValueType type;
  AttributeValue value;
  if (!cursor.ReadValue(type, value)) return false;
  const uint32_t slot = key_count_;
  AddAttribute(key, scope, type, value);
  switch (type) {
    case ValueType::kNull:  // has one spelling
      break;
    case ValueType::kBool:
      AddPlace(at, ValueKind::kBool, slot);
      break;
    case ValueType::kUint:
      AddPlace(at, ValueKind::kUint, slot);
      break;
    case ValueType::kInt:
      AddPlace(at, ValueKind::kInt, slot);
      break;
    case ValueType::kDouble:
      AddPlace(at, ValueKind::kDouble, slot);
      break;
    case ValueType::kString:
      AddPlace(at + 1, ValueKind::kString, slot);
      break;
    case ValueType::kJson:
      has_layout_ = false;
      break;
  }
  return true;
}

bool NrtEventDecoder::ReadMisfit(JsonCursor& cursor, std::string_view key) {
  has_layout_ = false;
  return ReadAttribute(cursor, key, KeyScope::kTop);
}

// An event with more attributes than the limit is unfit, and has no layout either.
void NrtEventDecoder::AddPlace(const char* at, ValueKind kind, size_t slot) {
  if (place_count_ == places_.size()) return;
  places_[place_count_++] = {at, kind, static_cast<uint8_t>(slot)};
}

// The event continues to be read after a limit is exceeded, so that its report has all of its
// fields.
void NrtEventDecoder::AddAttribute(std::string_view key, KeyScope scope, ValueType type,
                                   const AttributeValue& value) {
  if (value.text.size() > limits::kStringBytesMax || key.size() > limits::kStringBytesMax) {
    unfit_ = kTextTooLong;
  } else if (key_count_ == limits::kAttributesPerEventMax) {
    unfit_ = kTooManyAttributes;
  } else {
    keys_[key_count_] = {key, type, scope};
    values_[key_count_] = value;
    ++key_count_;
  }
}

}  // namespace neurontrace
