// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Writes one JSON value (RFC 8259) piece by piece and sets commas and colons. Checks no nesting:
// the caller closes what it opens. Numbers beyond 2^53, which many readers round, are the caller's
// to write as strings. One thread.
class JsonWriter {
 public:
  // kSpaced has a blank behind each comma and colon.
  enum class Style { kCompact, kSpaced };

  explicit JsonWriter(Style style = Style::kCompact) : is_spaced_(style == Style::kSpaced) {}

  JsonWriter& Open(char bracket);   // { or [
  JsonWriter& Close(char bracket);  // } or ]
  JsonWriter& Key(std::string_view key);
  // White space before the next key, element or closing bracket, behind its comma.
  JsonWriter& Space(std::string_view space);

  // Any bytes: those that are no UTF-8 become "?".
  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(const std::string& text) { return Value(std::string_view(text)); }
  JsonWriter& Value(bool value) { return Json(value ? "true" : "false"); }
  template <typename Number>
    requires(std::integral<Number> && !std::same_as<Number, bool>)
  JsonWriter& Value(Number value) {
    return Json(fmt::format_int(value).c_str());
  }
  JsonWriter& Value(const std::vector<std::string>& texts);
  // A value that is JSON already.
  JsonWriter& Json(std::string_view json);

  // The same of an object's members.
  template <typename Of>
  JsonWriter& Member(std::string_view key, const Of& value) {
    return Key(key).Value(value);
  }

  std::string Take() { return std::move(text_); }

 private:
  void Begin();  // of a key or an element

  const bool is_spaced_;
  bool follows_ = false;  // something that a comma has to divide from what comes
  std::string space_;
  std::string text_;
};

}  // namespace neurontrace
