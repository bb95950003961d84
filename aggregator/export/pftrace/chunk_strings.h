// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregator/export/pftrace/interner.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// The strings of one chunk as interned numbers, each interned when it is first used. Used by one
// thread at a time.
class ChunkStrings {
 public:
  // Longer strings are written out: they seldom recur, and would fill the interner.
  static constexpr size_t kInternedBytesMax = 256;

  explicit ChunkStrings(uint64_t serial) : serial_(serial) {}

  uint64_t serial() const { return serial_; }
  // The owner's: the number of the batch that used it last.
  uint64_t last_used = 0;

  // Return the number of a string of the chunk as the value of an argument or as the name of an
  // event: Perfetto keeps these apart.
  uint32_t StringIid(const ChunkNames& names, uint64_t string, Interner& interner) {
    return Iid(string_iids_, names, string, interner, &Interner::StringValue);
  }
  uint32_t NameIid(const ChunkNames& names, uint64_t string, Interner& interner) {
    return Iid(name_iids_, names, string, interner, &Interner::EventName);
  }

 private:
  // Interned numbers by string, valid for one generation.
  struct Iids {
    uint64_t generation = 0;
    std::vector<uint32_t> iid;  // by string; 0: not yet interned
  };
  uint32_t Iid(Iids& iids, const ChunkNames& names, uint64_t string, Interner& interner,
               uint32_t (Interner::*intern)(std::string_view)) {
    if (iids.generation != interner.generation()) [[unlikely]] {
      iids.iid.assign(names.strings.size(), 0);
      iids.generation = interner.generation();
    }
    uint32_t& iid = iids.iid[string];
    if (iid == 0) iid = (interner.*intern)(names.strings[string]);
    return iid;
  }

  const uint64_t serial_;
  Iids string_iids_;
  Iids name_iids_;
};

}  // namespace neurontrace
