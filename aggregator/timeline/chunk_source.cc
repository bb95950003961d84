// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/chunk_source.h"

namespace neurontrace {

// FNV-1a with 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). It is the same in every
// process, unlike absl::Hash: a hash can come from another aggregator.
uint64_t HashEventType(std::string_view event_type) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : event_type) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

}  // namespace neurontrace
