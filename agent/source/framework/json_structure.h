// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Follows the structure of one JSON value, in whatever pieces its bytes arrive: finds where it
// ends, or where it stops being JSON. The inside of scalars is not examined, and superfluous commas
// are accepted, as the JSON parser judges those. A plain value. Used by ElementCutter. The cost is
// one table look-up for each byte outside strings.
class JsonStructure {
 public:
  enum class Outcome : uint8_t {
    kMore,     // all bytes are used, and the value is not complete
    kEnd,      // the value ends before `at`
    kDamaged,  // the byte at `at` is not allowed there
  };

  // Containers inside each other; deeper nesting counts as damage.
  static constexpr size_t kDepthMax = 1024;

  // Starts at the beginning of a value. With `key`, has_key() says whether it is a key of the
  // value, an object, and inner_begin() where an object inside the value begins that has it.
  void BeginValue(std::string_view key = {});
  // Starts inside an object, after one of its members. The object is the value.
  void BeginAfterMember();

  // Continues at data[at], and advances `at` to the byte that decided the outcome, or to `end`.
  Outcome Scan(const char* data, size_t& at, size_t end);

  bool has_key() const { return has_key_; }
  // Returns whether the value is an object that has a key followed by a colon.
  bool has_member() const { return has_member_; }
  // Returns the number of bytes from the beginning to the first object inside the value that has
  // the key.
  std::optional<uint64_t> inner_begin() const { return inner_begin_; }
  // Returns the number of bytes from the beginning to the end of that key.
  uint64_t inner_key_end() const { return inner_key_end_; }
  // Returns the number of bytes from the beginning to that of the last string or scalar.
  uint64_t token_begin() const { return token_begin_; }

 private:
  enum class Expect : uint8_t { kValue, kValueOrClose, kKey, kKeyOrClose, kColon, kCommaOrClose };

  // Scan without the bookkeeping; ScanString is inside strings, ScanOuter outside.
  Outcome ScanBytes(const char* data, size_t& at, size_t end);
  void ScanString(const char* data, size_t& at, size_t end);
  // Compares the string at hand with the wanted key.
  void MatchKey(const char* data, size_t begin, size_t end);
  Outcome ScanOuter(const char* data, size_t& at, size_t end);
  // Each takes one structural character and returns false if it is not allowed at this place.
  bool HandleQuote();
  bool HandleOpen(char c, uint64_t begin);
  bool HandleClose(char c);
  bool HandleDelimiter(char c);
  bool in_object() const { return containers_.back() == '{'; }

  std::string containers_;        // those that are open
  std::vector<uint64_t> begins_;  // of each, in bytes from the beginning; only with a key
  // What the next structural character may be, and where in a string or scalar the scan is.
  Expect expect_ = Expect::kValue;
  bool begun_ = false;
  bool in_string_ = false;
  bool string_is_key_ = false;
  bool escaped_ = false;
  bool in_scalar_ = false;
  std::string_view key_;
  size_t key_matched_ =
      0;  // bytes of the string at hand that are like the key's; npos: not like it
  bool has_key_ = false;
  bool has_member_ = false;
  std::optional<uint64_t> inner_begin_;
  uint64_t inner_key_end_ = 0;
  uint64_t consumed_ = 0;  // by calls before this one
  size_t scan_begin_ = 0;  // of this call
  uint64_t token_begin_ = 0;
};

}  // namespace neurontrace
