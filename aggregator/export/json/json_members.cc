// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/json_members.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "aggregator/export/json/json_text.h"

namespace neurontrace {
namespace {

// Up to this size a text search is faster than building members_.
constexpr size_t kSearchedBytesMax = 4096;

}  // namespace

// Returns the place behind the closing quote, or the end of out_ if the string is not closed.
size_t JsonMembers::EndOfString(size_t quote) const {
  size_t at = quote + 1;
  // A quote after a backslash does not end the string.
  while (at < out_.size() && out_[at] != '"') at += out_[at] == '\\' ? 2 : 1;
  return std::min(at + 1, out_.size());
}

// A minimal scanner: out_ was written by this program, so that braces outside of strings match.
// Each byte is read once over the life of the object.
void JsonMembers::ReadOn() {
  if (at_ == 0 && out_.starts_with('{')) depth_ = -1;
  while (at_ < out_.size()) {
    const char c = out_[at_];
    if (c == ',' && depth_ == 0) {  // a member is at the depth of the object
      const size_t end = std::min(EndOfString(at_ + 1) + 1, out_.size());
      const std::string_view member = std::string_view(out_).substr(at_, end - at_);
      members_.push_back({absl::HashOf(member), at_, member.size()});
      at_ = end;
    } else if (c == '"') {
      at_ = EndOfString(at_);
    } else {
      depth_ += (c == '{' || c == '[') ? 1 : (c == '}' || c == ']') ? -1 : 0;
      ++at_;
    }
  }
}

// Hashes make the search over many members cheap; the texts are compared only if the hashes are
// equal.
bool JsonMembers::Has(std::string_view member) {
  if (out_.size() <= kSearchedBytesMax && out_.find(member) == std::string::npos) return false;
  ReadOn();
  const size_t hash = absl::HashOf(member);
  return std::any_of(members_.begin(), members_.end(), [&](const Member& other) {
    return other.hash == hash && std::string_view(out_).substr(other.begin, other.size) == member;
  });
}

void JsonMembers::AppendRenamedKey(std::string_view key, std::string_view before) {
  const size_t hash = absl::HashOf(key, before);
  auto known = std::find_if(renamed_.begin(), renamed_.end(),
                            [hash](const Renamed& other) { return other.hash == hash; });
  if (known == renamed_.end()) {
    renamed_.push_back({hash});
    known = renamed_.end() - 1;
  }
  // Terminates, because each turn makes a longer name, and out_ has a limited number of members.
  std::string renamed, text;
  do {
    // Continues where the last renaming of the same key ended: names with fewer prefixes exist.
    // Otherwise many equal keys would take quadratic time.
    ++known->times;
    renamed.clear();
    for (uint32_t i = 0; i < known->times; ++i) renamed += before;
    renamed += key;
    text.clear();
    AppendJsonKey(renamed, text);
  } while (Has(text));
  out_ += text;
}

void JsonMembers::AppendFreeKey(std::string_view key, std::string_view before) {
  std::string text;
  AppendJsonKey(key, text);
  if (Has(text)) return AppendRenamedKey(key, before);
  out_ += text;
}

}  // namespace neurontrace
