// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/decode/json_cursor.h"

#include <bitset>

namespace neurontrace {

bool JsonCursor::Fail(std::string_view what) {
  // At the end of a truncated text every expectation fails; that it ends is the reason.
  fault_ = {*token_, std::string(at_end() ? "the document is truncated" : what)};
  return false;
}

// The signed counterpart of ReadUint; worker_gid is the only such field.
bool JsonCursor::ReadInt(int64_t& value, bool& quoted) {
  std::string_view text = ScalarText();
  quoted = text.size() > 2 && text.front() == '"' && text.back() == '"';
  if (quoted) text = text.substr(1, text.size() - 2);
  if (!ParseCanonicalInt(text.data(), text.size(), value)) return false;
  ++token_;
  return true;
}

// The first character of a token decides its kind. What follows it is checked by the function for
// that kind.
bool JsonCursor::ReadValue(ValueType& type, AttributeValue& value) {
  const char c = peek();
  if (c == '"') return ReadString(type, value);
  if (c == '-' || (c >= '0' && c <= '9')) return ReadNumber(type, value);
  if (c == '{' || c == '[') {
    type = ValueType::kJson;
    value.bits = 0;
    return ReadNested(value.text);
  }
  return ReadLiteral(type, value);
}

bool JsonCursor::ReadString(ValueType& type, AttributeValue& value) {
  std::string_view inside;
  if (!PeekString(inside)) return false;
  value.bits = 0;
  type = ValueType::kString;
  value.text = inside;
  if (HasBackslash(inside.data(), inside.size())) {
    const size_t begin = unescaped_.size();
    if (AppendUnescaped(inside, unescaped_)) {
      value.text = std::string_view(unescaped_).substr(begin);
    } else if (EscapesAreWellFormed(inside)) {
      // Half of a surrogate pair has no UTF-8: the spelling itself is kept.
      type = ValueType::kJson;
      value.text = {inside.data() - 1, inside.size() + 2};
    } else {
      return Fail("a string has an invalid escape sequence");
    }
  }
  ++token_;
  return true;
}

bool JsonCursor::ReadNumber(ValueType& type, AttributeValue& value) {
  const std::string_view text = ScalarText();
  type = ClassifyNumber(text.data(), text.size(), value.bits);
  // ClassifyNumber returns kNull for text that is not a number, which begins like one here.
  if (type == ValueType::kNull) return Fail("a number is not valid JSON");
  value.text = type == ValueType::kJson ? text : std::string_view();
  ++token_;
  return true;
}

bool JsonCursor::ReadLiteral(ValueType& type, AttributeValue& value) {
  const std::string_view text = ScalarText();
  value = {};
  if (text == "null") {
    type = ValueType::kNull;
  } else if (text == "true" || text == "false") {
    type = ValueType::kBool;
    value.bits = text == "true" ? 1 : 0;
  } else {
    return Fail("expected a value");
  }
  ++token_;
  return true;
}

// Checks a scalar inside a nested value, whose text is kept as it is. So it needs the same checks
// as ReadValue, without the values.
bool JsonCursor::SkipScalar() {
  const std::string_view text = ScalarText();
  const char c = peek();
  if (c == '"') {
    std::string_view inside;
    if (!PeekString(inside)) return false;
    if (HasBackslash(inside.data(), inside.size()) && !EscapesAreWellFormed(inside)) {
      return Fail("a string has an invalid escape sequence");
    }
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    uint64_t bits = 0;
    if (ClassifyNumber(text.data(), text.size(), bits) == ValueType::kNull) {
      return Fail("a number is not valid JSON");
    }
  } else if (text != "null" && text != "true" && text != "false") {
    return Fail("expected a value");
  }
  ++token_;
  return true;
}

// Like ReadKey and DecodeKey, without the text.
bool JsonCursor::SkipKey() {
  std::string_view raw;
  if (!ReadKey(raw)) return false;
  if (HasBackslash(raw.data(), raw.size()) && !EscapesAreWellFormed(raw)) {
    return Fail("a key has an invalid escape sequence");
  }
  return true;
}

// A loop with a bit for each open container instead of recursion, so that nesting in a document
// cannot exhaust the stack.
bool JsonCursor::ReadNested(std::string_view& raw) {
  const uint32_t begin = *token_;
  std::bitset<kNestingMax> is_object;
  uint32_t depth = 0;
  while (true) {
    // A value is next.
    const char c = peek();
    if (c == '{' || c == '[') {
      if (depth == kNestingMax) return Fail("values are nested too deeply");
      is_object[depth++] = c == '{';
      ++token_;
      if (!ConsumeIf(c == '{' ? '}' : ']')) {
        if (c == '{' && !SkipKey()) return false;
        continue;
      }
      --depth;
    } else if (!SkipScalar()) {
      return false;
    }
    // A value was taken: close what ends here.
    bool more = false;
    while (depth > 0) {
      if (!ReadSeparator(is_object[depth - 1] ? '}' : ']', more)) return false;
      if (more) break;
      --depth;
    }
    if (depth == 0) break;
    if (is_object[depth - 1] && !SkipKey()) return false;
  }
  // The last token taken is the bracket that closes the value.
  raw = {text_ + begin, token_[-1] + size_t{1} - begin};
  return true;
}

bool JsonCursor::DecodeKey(std::string_view& key) {
  const size_t begin = unescaped_.size();
  if (AppendUnescaped(key, unescaped_)) {
    key = std::string_view(unescaped_).substr(begin);
    return true;
  }
  return EscapesAreWellFormed(key) || Fail("a key has an invalid escape sequence");
}

}  // namespace neurontrace
