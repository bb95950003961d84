// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/json_scalar.h"

#include <bit>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "lib/base/clean_text.h"

// A value keeps its type only if that reproduces the text exactly; otherwise the text itself is
// kept. So an export has the numbers as the profiler spelled them.
namespace neurontrace {
namespace {

// Containers inside each other in one attribute; the limit that the header promises.
constexpr size_t kNestingMax = 64;

// Returns the index of the first character from `at` on that is no digit.
size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && absl::ascii_isdigit(text[at])) ++at;
  return at;
}

// Whether a token is a JSON number, and one without fraction and exponent.
struct NumberShape {
  bool valid = false;
  bool integer = false;
};

// The number grammar of RFC 8259, section 6, which std::from_chars alone does not enforce: it
// accepts "01" and ".5".
NumberShape ClassifyNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = at;
  at = SkipDigits(text, at);
  if (at == whole || (text[whole] == '0' && at > whole + 1)) return {};
  if (at == text.size()) return {true, true};
  if (text[at] == '.') {
    const size_t fraction = at + 1;
    at = SkipDigits(text, fraction);
    if (at == fraction) return {};
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = at;
    at = SkipDigits(text, exponent);
    if (at == exponent) return {};
  }
  return {at == text.size(), false};
}

// Returns true for the spellings of Python's and C++'s JSON writers.
bool IsNonFinite(std::string_view token) {
  return token == "NaN" || token == "Infinity" || token == "-Infinity";
}

// Returns true if the whole text is a number of type T.
template <typename T>
bool FromChars(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Keeps a number whose value type would change its text.
JsonScalar RawJson(std::string_view token) { return {ValueType::kJson, {0, token}}; }

// Returns an integer with its type; kJson if 64 bits do not hold it.
JsonScalar ParseInteger(std::string_view token) {
  uint64_t unsigned_value = 0;
  if (FromChars(token, unsigned_value)) return {ValueType::kUint, {unsigned_value, {}}};
  int64_t value = 0;
  if (FromChars(token, value) && value < 0) {
    return {ValueType::kInt, {static_cast<uint64_t>(value), {}}};
  }
  return RawJson(token);  // "-0", or beyond 64 bits
}

// Returns a double if its shortest text is the token, else kJson.
JsonScalar ParseFraction(std::string_view token) {
  double value = 0;
  if (!FromChars(token, value)) return RawJson(token);
  char shortest[64];
  const auto [end, error] = std::to_chars(shortest, shortest + sizeof(shortest), value);
  // Only a double whose shortest text is the token itself can be written out as it was.
  if (error != std::errc() || std::string_view(shortest, end - shortest) != token) {
    return RawJson(token);
  }
  return {ValueType::kDouble, {std::bit_cast<uint64_t>(value), {}}};
}

// Walks JSON text token by token with a stack of its own, so that nesting in a file cannot exhaust
// the thread's stack.
class JsonChecker {
 public:
  JsonChecker(std::string_view text, std::string& rewritten) : text_(text), rewritten_(rewritten) {}

  // The grammar is a loop over two states: a value is wanted, or a separator.
  bool Check() {
    rewritten_.clear();
    bool want_value = true;
    for (;;) {
      SkipSpace();
      if (want_value) {
        if (!TakeValueStart(want_value)) return false;
      } else if (depth_ == 0) {
        break;
      } else if (!ReadSeparator(want_value)) {
        return false;
      }
    }
    if (at_ != text_.size()) return false;
    if (!rewritten_.empty()) rewritten_.append(text_.substr(copied_));
    if (has_line_breaks_) Compact();
    return true;
  }

 private:
  // Returns a NUL at the end of the text, which no rule of the grammar accepts.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  static bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  // Notes line breaks, which make the value be compacted at the end.
  void SkipSpace() {
    for (; at_ < text_.size() && IsSpace(text_[at_]); ++at_) {
      has_line_breaks_ = has_line_breaks_ || text_[at_] != ' ';
    }
  }

  // Removes every blank outside strings.
  void Compact() {
    std::string compact;
    bool in_string = false;
    const std::string_view from = rewritten_.empty() ? text_ : std::string_view(rewritten_);
    for (size_t i = 0; i < from.size(); ++i) {
      if (!in_string && IsSpace(from[i])) continue;
      compact += from[i];
      if (from[i] == '"') in_string = !in_string;
      if (in_string && from[i] == '\\') compact += from[++i];
    }
    rewritten_ = std::move(compact);
  }

  // Takes a scalar, a string, or the opening of a container with the first key of an object.
  bool TakeValueStart(bool& want_value) {
    const char c = Peek();
    // An empty container is complete here; otherwise a value or a key follows.
    if (c == '{' || c == '[') {
      if (depth_ == kNestingMax) return false;
      object_[depth_++] = c == '{';
      ++at_;
      SkipSpace();
      if (Peek() == (c == '{' ? '}' : ']')) {
        ++at_;
        --depth_;
        want_value = false;
        return true;
      }
      return c == '[' || TakeKey();
    }
    want_value = false;
    return c == '"' ? TakeString() : TakeScalar();
  }

  // Takes a comma, with the key that follows it in an object, or a closing bracket.
  bool ReadSeparator(bool& want_value) {
    const char c = Peek();
    ++at_;
    const bool in_object = object_[depth_ - 1];
    if (c == ',') {
      want_value = true;
      if (!in_object) return true;
      SkipSpace();
      return TakeKey();
    }
    if (c != (in_object ? '}' : ']')) return false;
    --depth_;
    return true;
  }

  // Takes a key and the colon behind it.
  bool TakeKey() {
    if (Peek() != '"' || !TakeString()) return false;
    SkipSpace();
    if (Peek() != ':') return false;
    ++at_;
    return true;
  }

  // Takes a string with its escapes. It is checked, not decoded: the text is kept as it is.
  bool TakeString() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      // Control characters must be escaped (RFC 8259, section 7).
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c != '\\') continue;
      ++at_;
      const char escape = Peek();
      if (escape == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          const char h = Peek();
          if (!absl::ascii_isxdigit(h)) return false;
        }
      } else if (escape == '\0' ||
                 std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }

  // Takes a literal or a number; a number that is not finite is rewritten as a string.
  bool TakeScalar() {
    const size_t first = at_;
    while (at_ < text_.size() &&
           std::string_view(",]} \n\t\r").find(text_[at_]) == std::string_view::npos)
      ++at_;
    const std::string_view token = text_.substr(first, at_ - first);
    if (token == "null" || token == "true" || token == "false" || ClassifyNumber(token).valid) {
      return true;
    }
    // The text is copied only from the first change on; most values need no copy.
    if (!IsNonFinite(token)) return false;
    rewritten_.append(text_.substr(copied_, first - copied_)).append(1, '"');
    rewritten_.append(token).append(1, '"');
    copied_ = at_;
    return true;
  }

  std::string_view text_;
  std::string& rewritten_;
  size_t at_ = 0;
  size_t copied_ = 0;  // of text_ into rewritten_, once there is something to rewrite
  size_t depth_ = 0;
  bool has_line_breaks_ = false;
  bool object_[kNestingMax] = {};
};

}  // namespace

std::optional<JsonScalar> ParseJsonScalar(std::string_view token) {
  if (token == "null") return JsonScalar{ValueType::kNull, {}};
  if (token == "true") return JsonScalar{ValueType::kBool, {1, {}}};
  if (token == "false") return JsonScalar{ValueType::kBool, {0, {}}};
  if (IsNonFinite(token)) return JsonScalar{ValueType::kString, {0, token}};
  const NumberShape number = ClassifyNumber(token);
  if (!number.valid) return std::nullopt;
  return number.integer ? ParseInteger(token) : ParseFraction(token);
}

std::string ShownToken(std::string_view token) {
  constexpr size_t kShownMax = 32;
  return CleanText(token, kShownMax);
}

bool CheckJson(std::string_view text, std::string& rewritten) {
  return JsonChecker(text, rewritten).Check();
}

}  // namespace neurontrace
