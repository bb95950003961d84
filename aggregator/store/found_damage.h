// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/ids.h"
#include "lib/trace/remark.h"

namespace neurontrace {

// Damage that somebody found who could not write to the database: a check, which only reads, or a
// reader after RocksDB has stopped writing. It is in a file beside the database, and the next
// Store::Open moves it into the records of its streams.
struct FoundDamage {
  CaptureId capture;
  uint32_t stream = 0;
  std::optional<uint64_t> sequence;  // of a chunk
  RemarkKind kind = RemarkKind::kChunkUnreadable;
  std::string what;

  friend bool operator==(const FoundDamage&, const FoundDamage&) = default;
};

// Appends to the file of the store in `path`, synced. Beyond limits::kFoundDamageBytesMax nothing
// is added: what the file has is enough to make the captures incomplete.
absl::Status AppendFoundDamage(const std::string& path, rocksdb::Env& env,
                               std::span<const FoundDamage> found);
// What the file says; empty where there is none. Lines that cannot be parsed are left out.
absl::StatusOr<std::vector<FoundDamage>> ReadFoundDamage(const std::string& path,
                                                         rocksdb::Env& env);
absl::Status RemoveFoundDamage(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
