// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json_writer.h"

#include <cassert>
#include <utility>

#include "lib/base/json_string.h"

namespace neurontrace {

void JsonWriter::Begin() {
  // Explicit white space replaces the blank of kSpaced, so that lines have no trailing blanks.
  if (follows_) text_ += is_spaced_ && space_.empty() ? ", " : ",";
  text_ += std::exchange(space_, {});
  follows_ = false;
}

JsonWriter& JsonWriter::Open(char bracket) {
  assert(bracket == '{' || bracket == '[');
  Begin();
  text_ += bracket;
  return *this;
}

// No comma precedes a closing bracket, but white space that Space has set does.
JsonWriter& JsonWriter::Close(char bracket) {
  assert(bracket == '}' || bracket == ']');
  text_ += std::exchange(space_, {});
  text_ += bracket;
  follows_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Begin();
  text_ += JsonText(key);
  text_ += is_spaced_ ? ": " : ":";
  return *this;
}

JsonWriter& JsonWriter::Space(std::string_view space) {
  space_ = space;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) { return Json(JsonText(text)); }

JsonWriter& JsonWriter::Value(const std::vector<std::string>& texts) {
  Open('[');
  for (const std::string& text : texts) Value(text);
  return Close(']');
}

JsonWriter& JsonWriter::Json(std::string_view json) {
  assert(!json.empty());
  Begin();
  text_ += json;
  follows_ = true;
  return *this;
}

std::string JsonWriter::Take() {
  follows_ = false;
  space_.clear();
  return std::exchange(text_, {});
}

}  // namespace neurontrace
