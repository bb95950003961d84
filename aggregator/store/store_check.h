// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/store/chunk_store.h"
#include "lib/trace/ids.h"

namespace rocksdb {
class Env;
}

namespace neurontrace {

// One thing in a store that is wrong, and where. Unset fields: it concerns more than one of them.
struct StoreFault {
  std::optional<CaptureId> capture;
  std::optional<uint32_t> stream;
  std::optional<uint64_t> sequence;
  std::string what;

  // Returns for example "capture 01J…, stream 3, chunk 17: its checksum is wrong".
  std::string ToString() const;
};

// Result of CheckStore: what was looked at and what is wrong.
struct StoreCheckReport {
  uint64_t files = 0;  // table files; values of chunks are read with their chunks
  uint64_t captures = 0;
  uint64_t streams = 0;
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;      // of chunks
  uint64_t artifacts = 0;  // distinct contents, each read and hashed
  uint64_t artifact_bytes = 0;
  uint64_t faults_total = 0;
  std::vector<StoreFault> faults;  // the first kStoreFaultsNamedMax of faults_total
  std::vector<std::string> notes;  // unusual but sound, such as an interrupted deletion
};
// Bounds the report of a store whose every chunk is damaged.
inline constexpr size_t kStoreFaultsNamedMax = 1'000;

// `examine` is required; it is called for each chunk that could be read.
struct StoreCheckOptions {
  ExamineChunk examine;
  // Called every 64 chunks with the numbers of checked and of all chunks. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// Verifies a store that no process has open, and changes nothing. Checks RocksDB's checksums, every
// chunk, every index entry against its chunk, every stream record against the sums over its chunks,
// that captures, streams, chunks and entries belong together, and the size and hash of every
// artifact.
//
// Damage is in the report. Fails with NOT_FOUND or FAILED_PRECONDITION if the store cannot be
// checked at all. `env` as for Store::Open.
absl::StatusOr<StoreCheckReport> CheckStore(const std::string& path, rocksdb::Env* env,
                                            const StoreCheckOptions& options);

// Writes the faults of streams into a file beside the database; from the next start on the
// captures' certificates include them. Repeating it adds nothing. `env` as for Store::Open.
absl::Status RememberFaults(const std::string& path, rocksdb::Env* env,
                            const StoreCheckReport& report);

}  // namespace neurontrace
