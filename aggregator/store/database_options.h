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
// in this order, from 1.
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
};
inline constexpr size_t kFamilyCount = 10;
std::string_view FamilyName(Family family);

// How RocksDB is set up; docs/formats/store.md says why. `env` may be nullptr.
rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env);
// RocksDB's own default family first, then ours.
std::vector<rocksdb::ColumnFamilyDescriptor> FamilyDescriptors();

}  // namespace neurontrace
