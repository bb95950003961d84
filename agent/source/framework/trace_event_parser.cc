// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_event_parser.h"

#include <simdjson.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "agent/source/framework/decimal_time.h"
#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/json_scalar.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

static_assert(ElementCutter::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

namespace ondemand = simdjson::ondemand;

constexpr size_t kNone = static_cast<size_t>(-1);

absl::Status Malformed(simdjson::error_code error) {
  return InvalidArgument("not an event: {}", simdjson::error_message(error));
}

std::string_view Trim(std::string_view token) {
  const size_t end = token.find_last_not_of(" \n\r\t");
  return token.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

Phase PhaseOf(std::string_view ph) {
  if (ph.size() != 1) return Phase::kOther;
  switch (ph[0]) {
    case 'X':
      return Phase::kComplete;
    case 'i':
      return Phase::kInstant;
    case 's':
      return Phase::kFlowStart;
    case 't':
      return Phase::kFlowStep;
    case 'f':
      return Phase::kFlowEnd;
    case 'C':
      return Phase::kCounter;
    case 'M':
      return Phase::kMetadata;
    default:
      return Phase::kOther;
  }
}

bool IsFlow(Phase phase) {
  return phase == Phase::kFlowStart || phase == Phase::kFlowStep || phase == Phase::kFlowEnd;
}

// What the mapping has to know of an event before it can finish it.
struct Noted {
  std::optional<std::string_view> category;
  std::optional<std::string_view> ph;
  std::optional<DecimalTime> time;
  std::optional<DecimalTime> duration;
  bool has_duration = false;
  size_t id_at = kNone;  // index among the attributes
};

}  // namespace

struct TraceEventParser::Impl {
  uint64_t base_time_ns;
  uint64_t last_time_ns;
  bool had_time = false;
  ondemand::parser parser;
  std::deque<std::string> rewritten;  // JSON values of this event that had to be changed

  absl::Status Add(FrameworkEvent& event, std::string_view name, KeyScope scope,
                   const JsonScalar& scalar) {
    if (event.values.size() == limits::kAttributesPerEventMax) {
      return ResourceExhausted("an event with more than {} attributes",
                               limits::kAttributesPerEventMax);
    }
    event.shape.keys.push_back({name, scalar.type, scope});
    event.values.push_back(scalar.value);
    return absl::OkStatus();
  }

  // Any value as an attribute.
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
    if (!scalar) return InvalidArgument("not an event: a value is no JSON");
    return *scalar;
  }

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
    if (!CheckJson(raw, changed)) return InvalidArgument("not an event: a nested value is no JSON");
    if (!changed.empty()) raw = rewritten.emplace_back(std::move(changed));
    return JsonScalar{ValueType::kJson, {0, raw}};
  }

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

  // "ts" or "dur", as a number or as a string of one.
  absl::StatusOr<std::optional<DecimalTime>> ReadTime(std::string_view key, ondemand::value value,
                                                      FrameworkEvent& event) {
    std::string_view token = Trim(value.raw_json_token());
    if (token.size() >= 2 && token.front() == '"') token = token.substr(1, token.size() - 2);
    const auto time = ParseMicroseconds(token);
    const bool says_all = time && time->exact && !(key == "dur" && time->negative);
    if (!says_all) {
      JsonScalar scalar{ValueType::kJson, {0, token}};
      if (!time) {
        ASSIGN_OR_RETURN(scalar, Read(value));
      }
      RETURN_IF_ERROR(Add(event, key, KeyScope::kTop, scalar));
    }
    return time;
  }

  absl::Status ReadMember(std::string_view key, ondemand::value value, FrameworkEvent& event,
                          Noted& noted) {
    if (key == "args") return ReadArguments(value, event);
    if (key == "ts" && !noted.time) {
      ASSIGN_OR_RETURN(noted.time, ReadTime(key, value, event));
      return absl::OkStatus();
    }
    if (key == "dur" && !noted.duration) {
      ASSIGN_OR_RETURN(noted.duration, ReadTime(key, value, event));
      if (noted.duration && !noted.duration->negative) {
        noted.has_duration = true;
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
    if (key == "tid" && scalar.type == ValueType::kUint &&
        (event.shape.present & FieldBit(Field::kThreadId)) == 0) {
      event.shape.present |= FieldBit(Field::kThreadId);
      event.fields.thread_id = scalar.value.bits;
      return absl::OkStatus();
    }
    if (key == "id" && noted.id_at == kNone) noted.id_at = event.values.size();
    // What this parser says in top scope must not be what a file says under the same name.
    const bool taken = key == "dur_ns" || key == "flow_id" || key == "phase";
    return Add(event, key, taken ? KeyScope::kData : KeyScope::kTop, scalar);
  }

  absl::Status Finish(FrameworkEvent& event, const Noted& noted) {
    const std::string_view ph = noted.ph.value_or("");
    event.shape.phase = PhaseOf(ph);
    event.shape.event_type = noted.category.value_or(ph);
    if (event.shape.phase == Phase::kOther && noted.ph) {
      RETURN_IF_ERROR(Add(event, "phase", KeyScope::kTop, {ValueType::kString, {0, ph}}));
    }
    if (event.shape.phase == Phase::kComplete && !noted.has_duration) {
      RETURN_IF_ERROR(Add(event, "dur_ns", KeyScope::kTop, {ValueType::kUint, {0, {}}}));
    }
    if (IsFlow(event.shape.phase) && noted.id_at != kNone) {
      event.shape.keys[noted.id_at].name = "flow_id";
    }
    had_time = noted.time.has_value();
    if (noted.time) {
      uint64_t sum = 0;
      if (noted.time->negative ? __builtin_sub_overflow(base_time_ns, noted.time->ns, &sum)
                               : __builtin_add_overflow(base_time_ns, noted.time->ns, &sum)) {
        return InvalidArgument("not an event: its time is out of range");
      }
      last_time_ns = sum;
    }
    event.fields.timestamp_ns = last_time_ns;
    return absl::OkStatus();
  }
};

TraceEventParser::TraceEventParser(uint64_t base_time_ns, uint64_t first_time_ns)
    : impl_(std::make_unique<Impl>()) {
  impl_->base_time_ns = base_time_ns;
  impl_->last_time_ns = first_time_ns;
}
TraceEventParser::~TraceEventParser() = default;
TraceEventParser::TraceEventParser(TraceEventParser&&) noexcept = default;
TraceEventParser& TraceEventParser::operator=(TraceEventParser&&) noexcept = default;

bool TraceEventParser::had_time() const { return impl_->had_time; }

absl::Status TraceEventParser::Parse(std::string_view element, FrameworkEvent& event) {
  event.shape.event_type = {};
  event.shape.present = FieldBit(Field::kTimestamp);
  event.shape.quoted = 0;
  event.shape.keys.clear();
  event.values.clear();
  event.fields = {};
  impl_->rewritten.clear();
  impl_->had_time = false;

  const simdjson::padded_string_view padded(element.data(), element.size(),
                                            element.size() + ElementCutter::kPaddingBytes);
  ondemand::document document;
  if (const auto error = impl_->parser.iterate(padded).get(document)) return Malformed(error);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return Malformed(error);
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
