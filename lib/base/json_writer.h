// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Writes one JSON value (RFC 8259) piece by piece and sets commas and colons. Does not check
// nesting: the caller closes what it opens and writes keys only in objects. Numbers beyond 2^53,
// which many readers round, have to be written as strings by the caller. Calls chain:
// json.Open('{').Member("a", 1).Close('}'). One thread.
class JsonWriter {
 public:
  // kSpaced writes a blank after each comma and colon.
  enum class Style { kCompact, kSpaced };

  explicit JsonWriter(Style style = Style::kCompact) : is_spaced_(style == Style::kSpaced) {}

  // Begin and end an object or an array, as an element or as the value of a key.
  JsonWriter& Open(char bracket);   // { or [
  JsonWriter& Close(char bracket);  // } or ]
  // Writes a member's key; its value must follow.
  JsonWriter& Key(std::string_view key);
  // White space before the next key, element or closing bracket, behind its comma.
  JsonWriter& Space(std::string_view space);

  // Writes a string or an element. Any bytes: those that are not UTF-8 become "?".
  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(const std::string& text) { return Value(std::string_view(text)); }
  JsonWriter& Value(bool value) { return Json(value ? "true" : "false"); }
  template <typename Number>
    requires(std::integral<Number> && !std::same_as<Number, bool>)
  JsonWriter& Value(Number value) {
    return Json(fmt::format_int(value).c_str());
  }
  // Writes an array of strings.
  JsonWriter& Value(const std::vector<std::string>& texts);
  // Writes a value that is JSON already. It is not checked.
  JsonWriter& Json(std::string_view json);

  // Writes a key with its value.
  template <typename Of>
  JsonWriter& Member(std::string_view key, const Of& value) {
    return Key(key).Value(value);
  }

  // Returns the text and leaves the writer empty, ready for another value.
  std::string Take();

 private:
  // Writes the comma and the white space before a key or an element.
  void Begin();

  const bool is_spaced_;
  // True after a value: the next key or element needs a comma.
  bool follows_ = false;
  std::string space_;  // white space that Space has set
  std::string text_;
};

}  // namespace neurontrace
