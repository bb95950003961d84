// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_event_parser.h"

#include <simdjson.h>

#include <bit>
#include <charconv>
#include <deque>
#include <system_error>
#include <utility>

#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/json_scalar.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

// How it works: ReadMember takes the members of an element in the order of the file and notes those
// that need others; Finish then sets phase, type, edge, time and duration. simdjson's On Demand
// parser reads each value once, without a tree.
namespace neurontrace {
namespace {

static_assert(ElementCutter::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

namespace ondemand = simdjson::ondemand;

constexpr size_t kNone = static_cast<size_t>(-1);

// Returns the status for text that simdjson cannot read as an event.
absl::Status Malformed(simdjson::error_code error) {
  return InvalidArgument("not an event: {}", simdjson::error_message(error));
}

// Removes the white space at the end, which simdjson's raw tokens include.
std::string_view Trim(std::string_view token) {
  const size_t end = token.find_last_not_of(" \n\r\t");
  return token.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

// The meaning of a "ph" (Trace Event Format, "Event Types"). `is_told` is false if the phase alone
// does not allow the letter to be restored, so that it is kept as an attribute.
struct PhaseMeaning {
  Phase phase = Phase::kOther;
  bool is_reported = true;
  SpanEdge::Kind edge = SpanEdge::Kind::kNone;
  bool is_async = false;
};

// Phases of the Trace Event Format; the letters of old versions (I, S, T, p, F) have the meaning of
// their successors.
PhaseMeaning MeaningOf(std::string_view ph) {
  if (ph.size() != 1) return {Phase::kOther, false};
  switch (ph[0]) {
    case 'X':
      return {Phase::kComplete};
    case 'B':
      return {Phase::kBegin, true, SpanEdge::Kind::kBegin};
    case 'E':
      return {Phase::kEnd, true, SpanEdge::Kind::kEnd};
    case 'b':
    case 'S':
      return {Phase::kBegin, false, SpanEdge::Kind::kBegin, true};
    case 'e':
    case 'F':
      return {Phase::kEnd, false, SpanEdge::Kind::kEnd, true};
    case 'i':
      return {Phase::kInstant};
    case 'I':
    case 'n':
    case 'T':
    case 'p':
      return {Phase::kInstant, false};
    case 's':
      return {Phase::kFlowStart};
    case 't':
      return {Phase::kFlowStep};
    case 'f':
      return {Phase::kFlowEnd};
    case 'C':
      return {Phase::kCounter};
    case 'M':
      return {Phase::kMetadata};
    default:
      return {Phase::kOther, false};
  }
}

// Flow events share an id, which readers connect as arrows.
bool IsFlow(Phase phase) {
  return phase == Phase::kFlowStart || phase == Phase::kFlowStep || phase == Phase::kFlowEnd;
}

// What must be known of an event before it can be completed, as members come in any order.
struct Noted {
  std::optional<std::string_view> category;
  std::optional<std::string_view> ph;
  std::optional<DecimalTime> time;
  std::string_view time_token;  // as it is in the file; empty: there is none
  std::optional<DecimalTime> duration;
  std::string_view duration_token;
  size_t duration_at = kNone;  // index of "dur_ns" among the attributes
  size_t id_at = kNone;        // the index of "id"
};

// Appends an id in decimal or as it is; ids that look alike count as equal whatever their type.
void AppendIdText(const ShapeKey& key, const AttributeValue& value, std::string& out) {
  if (key.type == ValueType::kUint) {
    out += std::to_string(value.bits);
  } else if (key.type == ValueType::kInt) {
    out += std::to_string(static_cast<int64_t>(value.bits));
  } else {
    out += value.text;
  }
}

// Returns true for the three numeric types.
bool IsNumber(ValueType type) {
  return type == ValueType::kUint || type == ValueType::kInt || type == ValueType::kDouble;
}

// Converts a counter's value to the number that its text denotes. Returns false if it is not a
// number, or one that would change.
bool MakeNumber(ShapeKey& key, AttributeValue& value) {
  if (IsNumber(key.type)) return true;
  if (key.type != ValueType::kString && key.type != ValueType::kJson) return false;
  const auto scalar = ParseJsonScalar(value.text);
  if (!scalar) return false;
  if (IsNumber(scalar->type)) {
    key.type = scalar->type;
    value = scalar->value;
    return true;
  }
  // Written in an unusual way ("1.0", "1e3"). An integer beyond 64 bits would lose digits.
  const bool is_fraction = value.text.find_first_of(".eE") != std::string_view::npos;
  if (scalar->type != ValueType::kJson || !is_fraction) return false;
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return false;
  key.type = ValueType::kDouble;
  value = {std::bit_cast<uint64_t>(number), {}};
  return true;
}

}  // namespace

struct TraceEventParser::Impl {
  uint64_t base_time_ns;
  // The time that metadata without one gets.
  uint64_t last_time_ns;
  TimeBounds bounds;
  std::optional<DecimalTime> event_time;
  ondemand::parser parser;
  std::deque<std::string> rewritten;  // JSON values of this event that had to be changed

  // Adds an attribute. Fails with RESOURCE_EXHAUSTED beyond limits::kAttributesPerEventMax.
  absl::Status Add(FrameworkEvent& event, std::string_view name, KeyScope scope,
                   const JsonScalar& scalar) {
    if (event.values.size() == limits::kAttributesPerEventMax) {
      return ResourceExhausted("the event has more than {} attributes",
                               limits::kAttributesPerEventMax);
    }
    event.shape.keys.push_back({name, scalar.type, scope});
    event.values.push_back(scalar.value);
    return absl::OkStatus();
  }

  // Reads any value as an attribute.
  absl::StatusOr<JsonScalar> Read(ondemand::value value) {
    const std::string_view token = Trim(value.raw_json_token());
    if (token.empty()) return InvalidArgument("not an event: a value is missing");
    if (token[0] == '"') {
      std::string_view text;
      if (const auto error = value.get_string().get(text)) return Malformed(error);
      return JsonScalar{ValueType::kString, {0, text}};
    }
    if (token[0] == '{' || token[0] == '[') return ReadNested(value, token[0] == '{');
    const auto scalar = ParseJsonScalar(token);
    if (!scalar) return InvalidArgument("not an event: a value is not valid JSON");
    return *scalar;
  }

  // Reads an object or an array as JSON text, rewritten if CheckJson demands it.
  absl::StatusOr<JsonScalar> ReadNested(ondemand::value value, bool object) {
    std::string_view raw;
    if (object) {
      ondemand::object nested;
      if (const auto error = value.get_object().get(nested)) return Malformed(error);
      if (const auto error = nested.raw_json().get(raw)) return Malformed(error);
    } else {
      ondemand::array nested;
      if (const auto error = value.get_array().get(nested)) return Malformed(error);
      if (const auto error = nested.raw_json().get(raw)) return Malformed(error);
    }
    raw = Trim(raw);
    std::string changed;
    if (!CheckJson(raw, changed))
      return InvalidArgument("not an event: a nested value is not valid JSON");
    if (!changed.empty()) raw = rewritten.emplace_back(std::move(changed));
    return JsonScalar{ValueType::kJson, {0, raw}};
  }

  // Adds each member of "args" as an attribute; "args" that is no object is one attribute itself.
  absl::Status ReadArguments(ondemand::value value, FrameworkEvent& event) {
    if (Trim(value.raw_json_token())[0] != '{') {
      ASSIGN_OR_RETURN(const JsonScalar scalar, Read(value));
      return Add(event, "args", KeyScope::kTop, scalar);
    }
    ondemand::object arguments;
    if (const auto error = value.get_object().get(arguments)) return Malformed(error);
    for (auto result : arguments) {
      ondemand::field field;
      if (const auto error = std::move(result).get(field)) return Malformed(error);
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return Malformed(error);
      ASSIGN_OR_RETURN(const JsonScalar scalar, Read(field.value()));
      RETURN_IF_ERROR(Add(event, key, KeyScope::kData, scalar));
    }
    return absl::OkStatus();
  }

  // Reads "ts" or "dur", given as a number or as a string of one. Adds an attribute with the
  // original text if the nanoseconds do not represent it exactly.
  absl::StatusOr<std::optional<DecimalTime>> ReadTime(std::string_view key, ondemand::value value,
                                                      std::string_view& token,
                                                      FrameworkEvent& event) {
    token = Trim(value.raw_json_token());
    std::string_view number = token;
    if (number.size() >= 2 && number.front() == '"') number = number.substr(1, number.size() - 2);
    auto time = ParseMicroseconds(number);
    // "-0" is 0.
    if (time && time->ns == 0 && time->exact) time->negative = false;
    const bool is_complete = time && time->exact && !(key == "dur" && time->negative);
    if (!is_complete) {
      JsonScalar scalar{ValueType::kJson, {0, number}};
      if (!time) {
        ASSIGN_OR_RETURN(scalar, Read(value));
      }
      RETURN_IF_ERROR(Add(event, key, KeyScope::kTop, scalar));
    }
    return time;
  }

  // Takes one member of the element. The first of repeated keys has the meaning; others are
  // attributes.
  absl::Status ReadMember(std::string_view key, ondemand::value value, FrameworkEvent& event,
                          Noted& noted) {
    if (key == "args") return ReadArguments(value, event);
    if (key == "ts" && !noted.time) {
      ASSIGN_OR_RETURN(noted.time, ReadTime(key, value, noted.time_token, event));
      return absl::OkStatus();
    }
    if (key == "dur" && !noted.duration) {
      ASSIGN_OR_RETURN(noted.duration, ReadTime(key, value, noted.duration_token, event));
      if (noted.duration && !noted.duration->negative) {
        noted.duration_at = event.values.size();
        const JsonScalar scalar{ValueType::kUint, {noted.duration->ns, {}}};
        return Add(event, "dur_ns", KeyScope::kTop, scalar);
      }
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const JsonScalar scalar, Read(value));
    if (key == "cat" && scalar.type == ValueType::kString && !noted.category) {
      noted.category = scalar.value.text;
      return absl::OkStatus();
    }
    if (key == "ph" && scalar.type == ValueType::kString && !noted.ph) {
      noted.ph = scalar.value.text;
      return absl::OkStatus();
    }
    // A second "tid", like every repeated key, becomes an attribute.
    if (key == "tid" && scalar.type == ValueType::kUint &&
        (event.shape.present & FieldBit(Field::kThreadId)) == 0) {
      event.shape.present |= FieldBit(Field::kThreadId);
      event.fields.thread_id = scalar.value.bits;
      return absl::OkStatus();
    }
    if (key == "name" && scalar.type == ValueType::kString && event.name.empty()) {
      event.name = scalar.value.text;
    }
    if (key == "id" && noted.id_at == kNone) noted.id_at = event.values.size();
    // Keys that this parser itself writes in top scope must not be confused with the file's own.
    const bool taken = key == "dur_ns" || key == "flow_id" || key == "phase" ||
                       key == kDurationMadeUpKey || key == kTimestampMadeUpKey;
    return Add(event, key, taken ? KeyScope::kData : KeyScope::kTop, scalar);
  }

  // Completes the event once all members are known. The order matters: the time needs the phase,
  // and the duration needs the time.
  absl::Status Finish(FrameworkEvent& event, const Noted& noted) {
    const std::string_view ph = noted.ph.value_or("");
    const PhaseMeaning meaning = MeaningOf(ph);
    event.shape.phase = meaning.phase;
    event.shape.event_type = noted.category.value_or(ph);
    event.time_text = noted.time_token;
    if (!meaning.is_reported && noted.ph) {
      RETURN_IF_ERROR(Add(event, "phase", KeyScope::kTop, {ValueType::kString, {0, ph}}));
    }
    if (IsFlow(meaning.phase) && noted.id_at != kNone) {
      // Renamed so that it is not confused with the ids of asynchronous events.
      event.shape.keys[noted.id_at].name = "flow_id";
    }
    if (meaning.phase == Phase::kCounter) MakeNumbers(event);
    if (meaning.edge != SpanEdge::Kind::kNone) SetEdge(meaning, noted, event);
    RETURN_IF_ERROR(SetTime(event, noted));
    return meaning.phase == Phase::kComplete ? SetDuration(event, noted) : absl::OkStatus();
  }

  // Converts the values of a counter, and counts those that cannot be converted.
  static void MakeNumbers(FrameworkEvent& event) {
    for (size_t i = 0; i < event.values.size(); ++i) {
      ShapeKey& key = event.shape.keys[i];
      if (key.scope != KeyScope::kData || MakeNumber(key, event.values[i])) continue;
      ++event.values_not_numeric;
    }
  }

  // Sets what the two ends of a span have in common: the thread, or the id, category and scope. The
  // old asynchronous kind (S, F) needs the name in addition; an id that is "local" is valid within
  // its process only (Trace Event Format, "Async Events").
  void SetEdge(const PhaseMeaning& meaning, const Noted& noted, FrameworkEvent& event) {
    SpanEdge& edge = event.edge;
    edge.kind = meaning.edge;
    edge.is_async = meaning.is_async;
    edge.has_category = noted.category.has_value();
    edge.name = event.name;
    edge.track = meaning.is_async ? "id" : "thread";
    bool is_local = false;
    for (size_t i = 0; i < event.values.size(); ++i) {
      const ShapeKey& key = event.shape.keys[i];
      if (key.scope != KeyScope::kTop) continue;
      const bool counts = meaning.is_async
                              ? key.name == "id" || key.name == "id2" || key.name == "scope"
                              : key.name == "pid" || key.name == "tid";
      is_local = is_local || (key.name == "id2" &&
                              event.values[i].text.find("local") != std::string_view::npos);
      if (counts) AppendPart(key, event.values[i], edge.track);
    }
    if (!meaning.is_async) {
      if ((event.shape.present & FieldBit(Field::kThreadId)) != 0) {
        AppendPart({"tid", ValueType::kUint}, {event.fields.thread_id, {}}, edge.track);
      }
      return;
    }
    const auto append_text = [&edge](std::string_view key, std::string_view text) {
      AppendPart({key, ValueType::kString}, {0, text}, edge.track);
    };
    append_text("cat", noted.category.value_or(""));
    if (noted.ph == "S" || noted.ph == "F") append_text("name", event.name);
    for (size_t i = 0; is_local && i < event.values.size(); ++i) {
      const ShapeKey& key = event.shape.keys[i];
      if (key.scope == KeyScope::kTop && key.name == "pid") {
        AppendPart(key, event.values[i], edge.track);
      }
    }
  }

  // Appends a key and its value to a track, so that different keys never give one track.
  static void AppendPart(const ShapeKey& key, const AttributeValue& value, std::string& out) {
    out += '\n';
    out += key.name;
    out += '\n';
    AppendIdText(key, value, out);
  }

  // Sets the event's time. Fails with OUT_OF_RANGE if it has none that is usable and is not
  // metadata.
  absl::Status SetTime(FrameworkEvent& event, const Noted& noted) {
    const bool is_metadata = event.shape.phase == Phase::kMetadata;
    const auto at_ns = noted.time ? bounds.Place(base_time_ns, *noted.time) : std::nullopt;
    if (!is_metadata) event_time = noted.time;
    // Metadata without a time gets the one before it, which keeps it in its place.
    if (at_ns) last_time_ns = *at_ns;
    event.fields.timestamp_ns = last_time_ns;
    if (at_ns || is_metadata) return absl::OkStatus();
    if (noted.time && noted.time->negative && noted.time->ns > base_time_ns) {
      return OutOfRange("\"ts\" is {}, which is before the start of the file's clock",
                        ShownToken(noted.time_token));
    }
    if (noted.time) {
      return OutOfRange("\"ts\" is {}, which is too far from the other times of the file",
                        ShownToken(noted.time_token));
    }
    if (noted.time_token.empty()) return OutOfRange("it has no \"ts\"");
    return OutOfRange("\"ts\" is {}, which is not a time", ShownToken(noted.time_token));
  }

  // Adds what a complete event needs: a duration that is usable, or 0 with the reason.
  absl::Status SetDuration(FrameworkEvent& event, const Noted& noted) {
    if (noted.duration_token.empty()) {
      event.invalid_duration = "absent";
    } else if (!noted.duration) {
      event.invalid_duration = "unusable";
    } else if (noted.duration->negative) {
      event.invalid_duration = "negative";
    } else if (noted.duration->ns > bounds.last_ns - event.fields.timestamp_ns) {
      event.invalid_duration = "too long";
      event.values[noted.duration_at].bits = 0;
      if (noted.duration->exact) {
        std::string_view text = noted.duration_token;
        if (text.front() == '"') text = text.substr(1, text.size() - 2);
        RETURN_IF_ERROR(Add(event, "dur", KeyScope::kTop, {ValueType::kJson, {0, text}}));
      }
    }
    if (event.invalid_duration.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(Add(event, kDurationMadeUpKey, KeyScope::kTop,
                        {ValueType::kString, {0, event.invalid_duration}}));
    if (noted.duration_at != kNone) return absl::OkStatus();
    return Add(event, "dur_ns", KeyScope::kTop, {ValueType::kUint, {0, {}}});
  }
};

TraceEventParser::TraceEventParser(uint64_t base_time_ns, uint64_t first_time_ns,
                                   const TimeBounds& bounds)
    : impl_(std::make_unique<Impl>()) {
  impl_->base_time_ns = base_time_ns;
  impl_->last_time_ns = first_time_ns;
  impl_->bounds = bounds;
}
TraceEventParser::~TraceEventParser() = default;
TraceEventParser::TraceEventParser(TraceEventParser&&) noexcept = default;
TraceEventParser& TraceEventParser::operator=(TraceEventParser&&) noexcept = default;

const std::optional<DecimalTime>& TraceEventParser::event_time() const { return impl_->event_time; }

absl::Status TraceEventParser::Parse(std::string_view element, FrameworkEvent& event) {
  event.shape.event_type = {};
  event.shape.present = FieldBit(Field::kTimestamp);
  event.shape.quoted = 0;
  event.shape.keys.clear();
  event.values.clear();
  event.fields = {};
  impl_->rewritten.clear();
  impl_->event_time.reset();
  event.edge.kind = SpanEdge::Kind::kNone;
  event.edge.track.clear();
  event.name = event.time_text = event.invalid_duration = {};
  event.values_not_numeric = 0;

  const simdjson::padded_string_view padded(element.data(), element.size(),
                                            element.size() + ElementCutter::kPaddingBytes);
  ondemand::document document;
  if (const auto error = impl_->parser.iterate(padded).get(document)) return Malformed(error);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return Malformed(error);
  // On Demand reads members in the order of the file, each once.
  Noted noted;
  for (auto result : object) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field)) return Malformed(error);
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return Malformed(error);
    RETURN_IF_ERROR(impl_->ReadMember(key, field.value(), event, noted));
  }
  return impl_->Finish(event, noted);
}

}  // namespace neurontrace
