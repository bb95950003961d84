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

// Damage found by somebody who could not write to the database: a check, which only reads, or a
// reader after RocksDB has stopped writing. It is kept in a file beside the database until the next
// Store::Open moves it into the records of the streams. A plain value; the functions below block
// the calling thread for the disk.
struct FoundDamage {
  CaptureId capture;
  uint32_t stream = 0;
  std::optional<uint64_t> sequence;  // of a chunk; nullopt: of the stream
  RemarkKind kind = RemarkKind::kChunkUnreadable;
  std::string what;  // for people, one line

  friend bool operator==(const FoundDamage&, const FoundDamage&) = default;
};

// Appends to the file of the store in `path` and syncs it. Beyond limits::kFoundDamageBytesMax
// nothing is added: what the file has makes the captures incomplete already.
absl::Status AppendFoundDamage(const std::string& path, rocksdb::Env& env,
                               std::span<const FoundDamage> found);
// Returns the contents of the file; empty if it does not exist. Skips lines that cannot be parsed.
// Fails with FAILED_PRECONDITION if it is larger than any check makes it, or a link.
absl::StatusOr<std::vector<FoundDamage>> ReadFoundDamage(const std::string& path,
                                                         rocksdb::Env& env);
// Deletes the file.
absl::Status RemoveFoundDamage(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
