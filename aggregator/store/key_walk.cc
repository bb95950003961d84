// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/key_walk.h"

#include "aggregator/store/keys.h"

namespace neurontrace {

void SeekBehind(rocksdb::Iterator& it, std::string_view prefix) {
  it.Seek(keys::PrefixEnd(prefix));
  // Of nothing but 0xff, and a key is longer than PrefixEnd thinks it can be.
  if (!it.Valid() || !it.key().starts_with({prefix.data(), prefix.size()})) return;
  it.SeekToLast();
  if (it.Valid()) it.Next();
}

}  // namespace neurontrace
