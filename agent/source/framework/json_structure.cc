// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/json_structure.h"

#include <array>
#include <utility>

// How it works: a stack of open containers and what is expected next (Expect) decide whether a
// structural character is allowed. Strings are scanned apart, as they hold most bytes of a trace.
// All state is kept between calls, so that a piece may end inside a string, an escape or a key.
namespace neurontrace {
namespace {

// What a character does outside strings.
enum class Role : uint8_t { kPlain, kQuote, kOpen, kClose, kDelimiter, kSpace };

// A table lookup for each byte: this loop sees every byte of every trace file.
constexpr std::array<Role, 256> MakeRoles() {
  std::array<Role, 256> roles{};
  roles['"'] = Role::kQuote;
  roles['{'] = roles['['] = Role::kOpen;
  roles['}'] = roles[']'] = Role::kClose;
  roles[','] = roles[':'] = Role::kDelimiter;
  roles[' '] = roles['\n'] = roles['\r'] = roles['\t'] = Role::kSpace;
  return roles;
}
constexpr std::array<Role, 256> kRoles = MakeRoles();
// Bytes above 127 are plain: text outside strings is judged by the JSON parser.
Role RoleOf(char c) { return kRoles[static_cast<unsigned char>(c)]; }

}  // namespace

void JsonStructure::BeginValue(std::string_view key) {
  // Keeps the vector's memory, so that an element of a file costs no allocation.
  std::vector<uint64_t> begins = std::move(begins_);
  *this = {};
  begins.clear();
  begins_ = std::move(begins);
  key_ = key;
}

void JsonStructure::BeginAfterMember() {
  *this = {};
  containers_ = "{";
  expect_ = Expect::kCommaOrClose;
  begun_ = true;
}

JsonStructure::Outcome JsonStructure::Scan(const char* data, size_t& at, size_t end) {
  // Offsets from the beginning of the value are consumed_ plus the distance from here.
  scan_begin_ = at;
  const Outcome outcome = ScanBytes(data, at, end);
  consumed_ += at - scan_begin_;
  return outcome;
}

// Alternates between the insides of strings and what lies between them, until the value ends.
JsonStructure::Outcome JsonStructure::ScanBytes(const char* data, size_t& at, size_t end) {
  while (at < end) {
    if (in_string_) {
      ScanString(data, at, end);
      if (in_string_) return Outcome::kMore;
      if (containers_.empty()) return Outcome::kEnd;
      continue;
    }
    if (containers_.empty()) {
      // A scalar without quotes ends where anything else begins.
      const Role role = RoleOf(data[at]);
      // Without consuming it: the delimiter belongs to the container.
      if (role != Role::kPlain && begun_) return Outcome::kEnd;
      if (role == Role::kClose || role >= Role::kDelimiter) return Outcome::kDamaged;
      if (!begun_) token_begin_ = consumed_ + at - scan_begin_;
      begun_ = true;
      if (role == Role::kPlain) {
        ++at;
        continue;
      }
    }
    const Outcome outcome = ScanOuter(data, at, end);
    if (outcome != Outcome::kMore || (containers_.empty() && !in_string_)) return outcome;
  }
  return Outcome::kMore;
}

void JsonStructure::ScanString(const char* data, size_t& at, size_t end) {
  // Bytes of a string need no role: only quotation marks and escapes matter.
  const size_t begin = at;
  while (at < end && (escaped_ || data[at] != '"')) {
    escaped_ = !escaped_ && data[at] == '\\';
    ++at;
  }
  const bool is_key = string_is_key_ && !key_.empty();
  if (is_key) MatchKey(data, begin, at);
  if (at == end) return;
  in_string_ = false;
  if (is_key && key_matched_ == key_.size()) {
    if (containers_.size() == 1) {
      has_key_ = true;
    } else if (!inner_begin_) {
      // Only the first one is kept, as the search begins there.
      inner_begin_ = begins_.back();
      inner_key_end_ = consumed_ + at - scan_begin_;
    }
  }
  ++at;
}

// A key may arrive in pieces, so the comparison continues where the last piece ended.
void JsonStructure::MatchKey(const char* data, size_t begin, size_t end) {
  if (key_matched_ == std::string_view::npos) return;
  const std::string_view bytes(data + begin, end - begin);
  const bool is_like = key_.substr(key_matched_).starts_with(bytes);
  key_matched_ = is_like ? key_matched_ + bytes.size() : std::string_view::npos;
}

// Scans outside strings, until one begins or the value ends.
JsonStructure::Outcome JsonStructure::ScanOuter(const char* data, size_t& at, size_t end) {
  for (; at < end; ++at) {
    const char c = data[at];
    const Role role = RoleOf(c);
    if (role == Role::kPlain) {
      if (in_scalar_) continue;
      if (expect_ != Expect::kValue && expect_ != Expect::kValueOrClose) return Outcome::kDamaged;
      in_scalar_ = true;
      token_begin_ = consumed_ + at - scan_begin_;
      expect_ = Expect::kCommaOrClose;
      continue;
    }
    const bool was_scalar = in_scalar_;
    in_scalar_ = false;
    switch (role) {
      case Role::kPlain:
      case Role::kSpace:
        break;
      case Role::kQuote:
        if (was_scalar || !HandleQuote()) return Outcome::kDamaged;
        token_begin_ = consumed_ + at - scan_begin_;
        ++at;
        return Outcome::kMore;
      case Role::kOpen:
        if (was_scalar || !HandleOpen(c, consumed_ + at - scan_begin_)) return Outcome::kDamaged;
        break;
      case Role::kClose:
        if (!HandleClose(c)) return Outcome::kDamaged;
        if (containers_.empty()) {
          ++at;
          return Outcome::kEnd;
        }
        break;
      case Role::kDelimiter:
        if (!HandleDelimiter(c)) return Outcome::kDamaged;
        break;
    }
  }
  return Outcome::kMore;
}

bool JsonStructure::HandleQuote() {
  string_is_key_ = expect_ == Expect::kKey || expect_ == Expect::kKeyOrClose;
  if (expect_ == Expect::kColon || expect_ == Expect::kCommaOrClose) return false;
  expect_ = string_is_key_ ? Expect::kColon : Expect::kCommaOrClose;
  key_matched_ = 0;
  in_string_ = true;
  return true;
}

bool JsonStructure::HandleOpen(char c, uint64_t begin) {
  if (expect_ != Expect::kValue && expect_ != Expect::kValueOrClose) return false;
  // Deep nesting is either damage or hostile, and would let memory grow.
  if (containers_.size() == kDepthMax) return false;
  containers_.push_back(c);
  if (!key_.empty()) begins_.push_back(begin);
  expect_ = c == '{' ? Expect::kKeyOrClose : Expect::kValueOrClose;
  return true;
}

bool JsonStructure::HandleClose(char c) {
  if ((c == '}') != in_object()) return false;
  containers_.pop_back();
  if (!key_.empty()) begins_.pop_back();
  expect_ = Expect::kCommaOrClose;
  return true;
}

// A colon follows a key; a comma separates members or elements.
bool JsonStructure::HandleDelimiter(char c) {
  if (c == ':') {
    if (expect_ != Expect::kColon) return false;
    has_member_ = true;
    expect_ = Expect::kValue;
    return true;
  }
  if (expect_ == Expect::kColon) return false;
  // A comma after a comma or an opening bracket is accepted and changes nothing.
  if (expect_ == Expect::kCommaOrClose || expect_ == Expect::kValue) {
    expect_ = in_object() ? Expect::kKey : Expect::kValueOrClose;
  }
  return true;
}

}  // namespace neurontrace
