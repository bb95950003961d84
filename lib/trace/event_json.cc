// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/event_json.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "lib/base/json_string.h"

namespace neurontrace {
namespace {

// std::to_chars writes the shortest text that reads back the same, which is also what decides
// whether a number is kept as a double; see ValueType::kDouble.
template <typename Number>
void AppendNumber(Number value, std::string& out) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}

// Returns the text of a phase in the runtime's JSON, or of one that only framework traces have.
// Empty for kOther, whose text is an attribute.
std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kStart:
      return "start";
    case Phase::kStop:
      return "stop";
    case Phase::kInstant:
      return "instant";
    case Phase::kComplete:
      return "complete";
    case Phase::kFlowStart:
      return "flow_start";
    case Phase::kFlowStep:
      return "flow_step";
    case Phase::kFlowEnd:
      return "flow_end";
    case Phase::kCounter:
      return "counter";
    case Phase::kMetadata:
      return "metadata";
    case Phase::kBegin:
      return "begin";
    case Phase::kEnd:
      return "end";
    case Phase::kOther:
      break;
  }
  return {};
}

// Writes the members of one object, with commas between them, to the caller's string.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void Key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    AppendJsonString(name, out_);
    out_ += ':';
  }
  void Close() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

// Appends a standard field, if the shape has it, in quotes if it came as a JSON string.
template <typename Number>
void AppendField(const Shape& shape, Field field, std::string_view name, Number value,
                 ObjectWriter& object, std::string& out) {
  if ((shape.present & FieldBit(field)) == 0) return;
  object.Key(name);
  const bool quoted = (shape.quoted & FieldBit(field)) != 0;
  if (quoted) out += '"';
  AppendNumber(value, out);
  if (quoted) out += '"';
}

// Returns whether "data" came as a value other than an object: it is then among the top-level keys.
bool HasTopLevelData(const Shape& shape) {
  bool at_top = false;
  for (const ShapeKey& key : shape.keys) {
    if (key.scope == KeyScope::kData) return false;
    at_top = at_top || key.name == "data";
  }
  return at_top;
}

// The mark is of our making and must not appear among the runtime's keys.
bool IsTimestampMark(const ShapeKey& key) {
  return key.scope == KeyScope::kTop && key.name == kTimestampMadeUpKey;
}

// The event that is being written.
struct WrittenEvent {
  const DecodedChunk& chunk;
  size_t event;
  const Shape& shape;
  bool (*is_json)(std::string_view);
};

// Appends the attributes of one scope, in the order of arrival.
void AppendKeys(const WrittenEvent& from, KeyScope scope, ObjectWriter& object, std::string& out) {
  const Shape& shape = from.shape;
  for (uint32_t k = 0; k < shape.keys.size(); ++k) {
    if (shape.keys[k].scope != scope || IsTimestampMark(shape.keys[k])) continue;
    object.Key(shape.keys[k].name);
    const AttributeValue value = from.chunk.value(from.event, k);
    const bool is_text = shape.keys[k].type == ValueType::kJson && from.is_json != nullptr &&
                         !from.is_json(value.text);
    // A raw value that is no JSON would make the whole document unreadable.
    AppendJsonValue(is_text ? ValueType::kString : shape.keys[k].type, value, out);
  }
}

}  // namespace

void AppendJsonValue(ValueType type, const AttributeValue& value, std::string& out) {
  switch (type) {
    case ValueType::kNull:
      out += "null";
      return;
    case ValueType::kBool:
      out += value.bits != 0 ? "true" : "false";
      return;
    case ValueType::kUint:
      AppendNumber(value.bits, out);
      return;
    case ValueType::kInt:
      AppendNumber(static_cast<int64_t>(value.bits), out);
      return;
    case ValueType::kDouble: {
      const double number = std::bit_cast<double>(value.bits);
      if (std::isfinite(number)) {
        AppendNumber(number, out);
      } else {
        out += "null";
      }
      return;
    }
    case ValueType::kString:
      AppendJsonString(value.text, out);
      return;
    case ValueType::kJson:
      out += value.text;
      return;
  }
}

void AppendEventJson(const DecodedChunk& chunk, size_t event, uint32_t nc_idx, std::string& out,
                     bool (*is_json)(std::string_view)) {
  const Shape& shape = chunk.shapes()[chunk.shape_of()[event]];
  const WrittenEvent from{chunk, event, shape, is_json};
  const EventFields fields = chunk.fields(event);
  ObjectWriter object(out);
  if (!shape.event_type.empty()) {
    object.Key("event_type");
    AppendJsonString(shape.event_type, out);
  }
  if (shape.phase != Phase::kOther) {
    object.Key("phase");
    AppendJsonString(PhaseName(shape.phase), out);
  }
  AppendField(shape, Field::kId, "id", fields.id, object, out);
  AppendField(shape, Field::kNcIdx, "nc_idx", nc_idx, object, out);
  AppendField(shape, Field::kNcLocalId, "nc_local_id", fields.nc_local_id, object, out);
  AppendField(shape, Field::kTrackingId, "tracking_id", fields.tracking_id, object, out);
  AppendField(shape, Field::kThreadId, "thread_id", fields.thread_id, object, out);
  AppendField(shape, Field::kWorkerGid, "worker_gid", fields.worker_gid, object, out);
  if (!HasTopLevelData(shape)) {
    object.Key("data");
    ObjectWriter data(out);
    AppendKeys(from, KeyScope::kData, data, out);
    data.Close();
  }
  if (std::none_of(shape.keys.begin(), shape.keys.end(), IsTimestampMark)) {
    AppendField(shape, Field::kTimestamp, "timestamp_ns", fields.timestamp_ns, object, out);
  }
  AppendField(shape, Field::kNrtaSeqId, "nrta_seq_id", fields.nrta_seq_id, object, out);
  AppendKeys(from, KeyScope::kTop, object, out);
  object.Close();
}

}  // namespace neurontrace
