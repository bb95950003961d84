// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/json_text.h"

#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_string.h"
#include "lib/trace/event_json.h"

namespace neurontrace {
namespace {

// Nesting of arrays and objects; the limit that json_text.h promises.
constexpr int kDepthMax = 64;

// Returns whether the whole text is valid UTF-8, as Utf8SequenceBytes defines it.
bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// A recursive descent parser after the grammar of RFC 8259. Each function removes what it is named
// after from the front, or returns false. By hand, because a library would build a value.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}
  // Called once: the checker consumes its text.
  bool IsOneValue() {
    if (!Value(0)) return false;
    Space();
    return text_.empty();
  }

 private:
  bool Take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void Space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' ||
                              text_.front() == '\r' || text_.front() == '\t')) {
      text_.remove_prefix(1);
    }
  }
  bool Digits() {
    if (text_.empty() || !absl::ascii_isdigit(text_.front())) return false;
    while (!text_.empty() && absl::ascii_isdigit(text_.front())) text_.remove_prefix(1);
    return true;
  }
  bool Number() {
    Take('-');
    // JSON has no leading zeros: after a 0 only a fraction or an exponent may follow.
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (!Take('e') && !Take('E')) return true;
    if (!Take('+')) Take('-');
    return Digits();
  }
  // Called after the backslash.
  bool Escape() {
    if (!Take('u')) {
      const bool is_known = !text_.empty() && std::string_view("\"\\/bfnrt").find(text_.front()) !=
                                                  std::string_view::npos;
      if (is_known) text_.remove_prefix(1);
      return is_known;
    }
    // Half of a surrogate pair is not a character, and many readers refuse it.
    const std::optional<uint32_t> unit = CodeUnit();
    if (!unit || IsBetween(*unit, 0xdc00, 0xdfff)) return false;
    if (!IsBetween(*unit, 0xd800, 0xdbff)) return true;
    if (!Take("\\u")) return false;
    const std::optional<uint32_t> second = CodeUnit();
    return second && IsBetween(*second, 0xdc00, 0xdfff);
  }
  static bool IsBetween(uint32_t value, uint32_t first, uint32_t last) {
    return value >= first && value <= last;
  }
  // Removes four hexadecimal digits and returns their value; nullopt leaves the text as it is.
  std::optional<uint32_t> CodeUnit() {
    constexpr size_t kDigits = 4;
    const std::string_view digits = text_.substr(0, kDigits);
    uint32_t unit = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (error != std::errc() || rest != digits.data() + kDigits) return std::nullopt;
    text_.remove_prefix(kDigits);
    return unit;
  }
  bool String() {
    if (!Take('"')) return false;
    while (!text_.empty()) {
      const char c = text_.front();
      // Control characters must be escaped.
      if (static_cast<unsigned char>(c) < 0x20) return false;
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\' && !Escape()) return false;
    }
    return false;
  }
  bool Member(int depth) {
    Space();
    if (!String()) return false;
    Space();
    return Take(':') && Value(depth);
  }
  // Checks the elements of an array, or the members of an object, up to and including `end`.
  bool Elements(char end, bool are_members, int depth) {
    Space();
    if (Take(end)) return true;
    do {
      if (!(are_members ? Member(depth) : Value(depth))) return false;
      Space();
    } while (Take(','));
    return Take(end);
  }
  bool Value(int depth) {
    // Bounds the recursion for hostile texts, here and in the readers of the file.
    if (depth > kDepthMax) return false;
    Space();
    if (text_.empty()) return false;
    switch (text_.front()) {
      case '{':
        return Take('{') && Elements('}', true, depth + 1);
      case '[':
        return Take('[') && Elements(']', false, depth + 1);
      case '"':
        return String();
      case 't':
        return Take("true");
      case 'f':
        return Take("false");
      case 'n':
        return Take("null");
      default:
        return Number();
    }
  }

  std::string_view text_;
};

}  // namespace

// The grammar is checked on bytes; whether these are UTF-8 is a separate and faster pass.
bool IsJson(std::string_view text) { return Checker(text).IsOneValue() && IsUtf8(text); }

void AppendRepairedUtf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    out += bytes == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
}

void AppendAsJsonString(std::string_view text, std::string& out) {
  // Nearly all texts are valid and need no copy.
  if (IsUtf8(text)) return AppendJsonString(text, out);
  std::string repaired;
  AppendRepairedUtf8(text, repaired);
  AppendJsonString(repaired, out);
}

void AppendJsonKey(std::string_view key, std::string& out) {
  out += ',';
  AppendAsJsonString(key, out);
  out += ':';
}

void AppendJsonText(std::string_view key, std::string_view value, std::string& out) {
  out += ",\"";
  out += key;
  out += "\":";
  AppendAsJsonString(value, out);
}

// The value of a string or JSON is an index into the texts of the record's chunk.
void AppendAttributeValue(const ShapeKey& key, uint64_t value, const TimelineRecord& record,
                          std::string& out) {
  if (key.type == ValueType::kString ||
      (key.type == ValueType::kJson && !IsJson(record.text(value)))) {
    AppendAsJsonString(record.text(value), out);
  } else if (key.type == ValueType::kJson) {
    out += record.text(value);
  } else {
    AppendJsonValue(key.type, {value, {}}, out);
  }
}

}  // namespace neurontrace
