// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace neurontrace {

// Adds members to an object under way without giving two of them one key. Looks at what the object
// holds only when a key may be there already, and then at each byte once. Recreated for each
// object; `out` outlives it, and grows by whole members alone. One thread at a time.
class JsonMembers {
 public:
  // `out` begins with the object's brace or with the comma before its first member.
  explicit JsonMembers(std::string& out) : out_(out) {}

  // A key that may be taken: with `before` before it, as often as it takes for no member to have
  // it.
  void AppendRenamedKey(std::string_view key, std::string_view before);
  // A key as it is, or renamed where a member has it.
  void AppendFreeKey(std::string_view key, std::string_view before);

 private:
  struct Member {
    size_t hash = 0;
    size_t begin = 0;  // in out_: ,"key":
    size_t size = 0;
  };
  struct Renamed {
    size_t hash = 0;  // of the key and what was put before it
    uint32_t times = 0;
  };

  bool Has(std::string_view member);
  void ReadOn();
  size_t EndOfString(size_t quote) const;

  std::string& out_;
  size_t at_ = 0;  // members_ has what precedes
  int depth_ = 0;
  absl::InlinedVector<Member, 16> members_;
  absl::InlinedVector<Renamed, 8> renamed_;
};

}  // namespace neurontrace
