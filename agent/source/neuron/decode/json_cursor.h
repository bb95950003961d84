// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/source/neuron/decode/json_index.h"
#include "agent/source/neuron/decode/json_text.h"
#include "lib/trace/event.h"

namespace neurontrace {

// Walks the tokens of an indexed JSON text and checks the grammar (RFC 8259) on the way. Functions
// that return false have met a fault and describe it in `fault`; nothing may be taken after that.
// Views point into the text or, for strings with escapes, into `unescaped`, and are valid until
// that is cleared. `unescaped` must have the capacity of the whole text if that contains a
// backslash, so that it never moves. Used by one thread at a time.
class JsonCursor {
 public:
  // How deeply a value may be nested; one bit of memory for each level.
  static constexpr uint32_t kNestingMax = 256;

  // The index and its text outlive the cursor.
  JsonCursor(const char* text, const JsonIndex& index, std::string& unescaped)
      : text_(text),
        token_(index.tokens().data()),
        end_(index.tokens().data() + index.tokens().size()),
        unescaped_(unescaped) {}

  // Returns the first character of the current token; 0 at the end.
  char peek() const { return text_[*token_]; }
  // Returns the place of the current token in the text.
  uint32_t offset() const { return *token_; }
  // Returns the text of the current token and everything behind it.
  const char* text() const { return text_ + *token_; }
  // Returns the entry of the index for the current token.
  const uint32_t* token() const { return token_; }
  // Returns the text from the token at `first` to the closing bracket that was taken last.
  std::string_view TextFrom(const uint32_t* first) const {
    return {text_ + *first, token_[-1] + size_t{1} - *first};
  }
  // Returns whether every token was taken.
  bool at_end() const { return token_ == end_; }
  // Takes the current token without a check. Requires that there is one.
  void Skip() { ++token_; }
  // Takes `count` tokens, if they are the text of so many bytes that ends with a bracket.
  bool SkipText(uint32_t count, uint32_t bytes) {
    if (count > static_cast<size_t>(end_ - token_) || token_[count - 1] != *token_ + bytes - 1) {
      return false;
    }
    token_ += count;
    return true;
  }
  // Makes the token that was taken last current again.
  void GoBackOne() { --token_; }
  // Takes the token if it begins with this character.
  bool ConsumeIf(char c) {
    if (peek() != c) return false;
    ++token_;
    return true;
  }

  // Takes a key and its colon; `raw` is the key as written between the quotes.
  bool ReadKey(std::string_view& raw);
  // Returns the text between the quotes of the current string; the cursor stays.
  bool PeekString(std::string_view& inside);
  // Takes the current number if it is spelled canonically (inside quotes with `quoted`). For
  // anything else it returns false without a fault, and the cursor stays.
  bool ReadUint(uint64_t& value, bool& quoted);
  bool ReadInt(int64_t& value, bool& quoted);

  // Takes any value. For kJson the text is the raw text. A number that its type would not reproduce
  // exactly is kJson, too (ClassifyNumber).
  bool ReadValue(ValueType& type, AttributeValue& value);
  // Takes a comma (`more`) or the closing character.
  bool ReadSeparator(char closing, bool& more);

  // Decodes the escapes of a raw key that was just taken. A key with half of a surrogate pair stays
  // as it is. Fails if an escape is invalid.
  bool DecodeKey(std::string_view& key);

  // Sets the fault at the current token, and returns false.
  bool Fail(std::string_view what);
  const JsonIndex::Fault& fault() const { return fault_; }

 private:
  // Returns the text of the current scalar, without white space after it.
  std::string_view ScalarText() const;
  // Take one scalar of the kind that its first character announces. A string with half of a
  // surrogate pair is kJson: its text is the raw text with the quotes.
  bool ReadString(ValueType& type, AttributeValue& value);
  bool ReadNumber(ValueType& type, AttributeValue& value);
  bool ReadLiteral(ValueType& type, AttributeValue& value);
  // Takes an object or array as raw text, after checking its grammar.
  bool ReadNested(std::string_view& raw);
  // Check and skip one scalar, or one key with its colon.
  bool SkipScalar();
  bool SkipKey();

  // The text and its index are the caller's; a zero byte ends the text at the last entry of the
  // index.
  const char* const text_;
  // The current token and the entry behind the last one, both within the index.
  const uint32_t* token_;
  const uint32_t* const end_;
  // Takes the texts of strings whose escapes were decoded; the caller reserves and clears it.
  std::string& unescaped_;
  // The fault at which the walk ended; only meaningful after a function has failed.
  JsonIndex::Fault fault_;
};

// A scalar ends before the next token, with only white space between them, or at the end of the
// text.
inline std::string_view JsonCursor::ScalarText() const {
  const char* const begin = text_ + token_[0];
  const char* end = text_ + token_[1];
  while (end > begin && IsJsonBlank(end[-1])) --end;
  return {begin, static_cast<size_t>(end - begin)};
}

inline bool JsonCursor::PeekString(std::string_view& inside) {
  if (peek() != '"') return Fail("expected a string");
  const std::string_view text = ScalarText();
  if (text.size() < 2 || text.back() != '"') return Fail("a string is not terminated");
  inside = text.substr(1, text.size() - 2);
  return true;
}

inline bool JsonCursor::ReadKey(std::string_view& raw) {
  if (!PeekString(raw)) return false;
  ++token_;
  if (!ConsumeIf(':')) return Fail("expected a colon");
  return true;
}

inline bool JsonCursor::ReadSeparator(char closing, bool& more) {
  const char c = peek();
  if (c != ',' && c != closing) return Fail("expected a comma or the end of a list");
  ++token_;
  more = c == ',';
  return true;
}

inline bool JsonCursor::ReadUint(uint64_t& value, bool& quoted) {
  std::string_view text = ScalarText();
  quoted = text.size() > 2 && text.front() == '"' && text.back() == '"';
  if (quoted) text = text.substr(1, text.size() - 2);
  if (!ParseCanonicalUint(text.data(), text.size(), value)) return false;
  ++token_;
  return true;
}

}  // namespace neurontrace
