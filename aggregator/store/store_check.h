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

// One thing in a store that is not as it should be, and where.
struct StoreFault {
  std::optional<CaptureId> capture;
  std::optional<uint32_t> stream;
  std::optional<uint64_t> sequence;
  std::string what;

  // "capture 01J…, stream 3, chunk 17: …"
  std::string ToString() const;
};

struct StoreCheckReport {
  uint64_t files = 0;  // of keys; values of chunks lie in others and are read with their chunks
  uint64_t captures = 0;
  uint64_t streams = 0;
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;      // of chunks
  uint64_t artifacts = 0;  // contents, each read and hashed
  uint64_t artifact_bytes = 0;
  uint64_t faults_total = 0;
  std::vector<StoreFault> faults;  // the first kStoreFaultsNamedMax
  std::vector<std::string> notes;  // what is unusual and sound, as a deletion that was interrupted
};
inline constexpr size_t kStoreFaultsNamedMax = 1'000;

struct StoreCheckOptions {
  ExamineChunk examine;
  // Told now and then how many of how many chunks were looked at. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// Verifies a store that no process has open, and changes nothing: RocksDB's checksums, every chunk,
// every index entry against its chunk, every stream record against the sums over its chunks, and
// that captures, streams, chunks and entries belong together; that every artifact is there and is
// what its hash says. Damage is in the report; an error
// says that the store cannot be looked at (NOT_FOUND, FAILED_PRECONDITION). `env` as with
// Store::Open.
absl::StatusOr<StoreCheckReport> CheckStore(const std::string& path, rocksdb::Env* env,
                                            const StoreCheckOptions& options);

// Writes the faults that concern a stream beside the database, so that the captures' certificates
// have them from the next start on. `env` as with Store::Open.
absl::Status RememberFaults(const std::string& path, rocksdb::Env* env,
                            const StoreCheckReport& report);

}  // namespace neurontrace
