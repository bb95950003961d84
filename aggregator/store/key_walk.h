// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/iterator.h>

#include <string_view>

namespace neurontrace {

// Moves an iterator behind every key with this prefix, and from there never back: where all its
// bytes are 0xff there is nothing behind, and the iterator is not valid then.
void SeekBehind(rocksdb::Iterator& it, std::string_view prefix);

}  // namespace neurontrace
