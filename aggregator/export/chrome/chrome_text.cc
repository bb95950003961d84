// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/chrome/chrome_text.h"

#include <fmt/format.h>

#include "aggregator/export/json/json_text.h"
#include "trace/event_json.h"

namespace neurontrace {
namespace {

constexpr uint64_t kDoubleExactMax = uint64_t{1} << 53;

bool IsExact(ValueType type, uint64_t value) {
  if (type == ValueType::kUint) return value <= kDoubleExactMax;
  if (type == ValueType::kInt) return 0 - value <= kDoubleExactMax;  // a negative one's magnitude
  return true;
}

}  // namespace

void AppendMicroseconds(int64_t ns, std::string& out) {
  uint64_t rest = static_cast<uint64_t>(ns);
  if (ns < 0) {
    out += '-';
    rest = 0 - rest;
  }
  fmt::format_to(std::back_inserter(out), "{}.{:03}", rest / 1'000, rest % 1'000);
}

void AppendArgument(const EventAttribute& attribute, std::string& out) {
  AppendJsonKey(attribute.name, out);
  AppendArgumentValue(attribute, out);
}

void AppendArgumentValue(const EventAttribute& attribute, std::string& out) {
  const bool is_json = attribute.type == ValueType::kJson && IsJson(attribute.text);
  if (is_json) {
    out += attribute.text;
  } else if (attribute.type == ValueType::kString || attribute.type == ValueType::kJson) {
    AppendAsJsonString(attribute.text, out);
  } else if (IsExact(attribute.type, attribute.value)) {
    AppendJsonValue(attribute.type, {attribute.value, {}}, out);
  } else {
    out += '"';
    AppendJsonValue(attribute.type, {attribute.value, {}}, out);
    out += '"';
  }
}

void AppendCounterValue(std::string_view name, const ShapeKey& key, uint64_t value,
                        std::string& out) {
  AppendJsonKey(name, out);
  AppendJsonValue(key.type, {value, {}}, out);
}

}  // namespace neurontrace
