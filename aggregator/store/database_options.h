// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace neurontrace {

// The column families, in the order in which docs/formats/store.md lists them. RocksDB numbers them
// from 1 in this order, and logs contain the numbers: never reorder, only append.
enum class Family : uint8_t {
  kMeta = 0,
  kCaptures,
  kAgents,
  kWorkers,
  kStreams,
  kChunks,
  kChunkIndex,
  kClockObservations,
  kClockModels,
  kArtifacts,
  kDigests,
};
inline constexpr size_t kFamilyCount = 11;
// Returns the name by which RocksDB and docs/formats/store.md know the family. Pure.
std::string_view FamilyName(Family family);

// Returns RocksDB's settings; docs/formats/store.md gives the reason for each. `env` is not owned
// and may be nullptr. Keeps no state; any thread.
rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env);
// Returns the descriptors of all families: RocksDB's own default family first, then ours in order.
std::vector<rocksdb::ColumnFamilyDescriptor> FamilyDescriptors();

}  // namespace neurontrace
