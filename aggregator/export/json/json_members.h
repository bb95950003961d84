// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace neurontrace {

// Adds members to an object that is being written without giving two of them one key. It examines
// the object only when a key may exist already, and then each byte once. Made for one object; `out`
// must outlive it and may grow by whole members only. Used by one thread at a time. The exporters
// use it for recorded attributes, whose names are free and may collide with members that are
// written already.
class JsonMembers {
 public:
  // `out` begins with the object's brace, or with the comma before its first member.
  explicit JsonMembers(std::string& out) : out_(out) {}

  // Appends a key that may exist with `before` in front of it, as often as necessary to be unique.
  void AppendRenamedKey(std::string_view key, std::string_view before);
  // Appends the key as it is, or renamed if a member has it.
  void AppendFreeKey(std::string_view key, std::string_view before);

 private:
  struct Member {
    // Of the text ,"key": and compared before the text itself.
    size_t hash = 0;
    // The place of ,"key": in out_.
    size_t begin = 0;
    size_t size = 0;
  };
  struct Renamed {
    // Of the key and its prefix.
    size_t hash = 0;
    uint32_t times = 0;
  };

  // Returns whether out_ has a member that begins with this text: ,"key":
  bool Has(std::string_view member);
  // Adds the members from at_ on to members_.
  void ReadOn();
  size_t EndOfString(size_t quote) const;

  std::string& out_;
  // The state of the incremental parse:
  // members_ has everything before this place.
  size_t at_ = 0;
  // Nesting at at_; 0 is the depth of the object's own members.
  int depth_ = 0;
  absl::InlinedVector<Member, 16> members_;
  absl::InlinedVector<Renamed, 8> renamed_;
};

}  // namespace neurontrace
