// SPDX-License-Identifier: Apache-2.0
// Anything at all as a write-ahead log or a blob file of the database, as a damaged disk or a
// backup of who knows whom may hold it; checksums are made right so that mutations get past them.
// What is read lies within the file, and a log that was rewritten out of what was whole has the
// same writes and no damage.
#include <rocksdb/env.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/store/blob_scan.h"
#include "aggregator/store/database_options.h"
#include "aggregator/store/rocksdb_bytes.h"
#include "aggregator/store/wal_scan.h"
#include "lib/trace/ids.h"

namespace neurontrace {
namespace {

constexpr char kDirectory[] = "/db";
constexpr char kLog[] = "/db/000001.log";
constexpr char kBlob[] = "/db/000002.blob";

void Check(bool good) {
  if (!good) std::abort();
}

void PutUint32(uint32_t value, char* at) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

constexpr size_t kBlockBytes = 32'768;
constexpr size_t kFragmentHeaderBytes = 7;

// A fragment that leaves so much of a block that `bytes` continue in the next one.
void PutAtBlockEnd(std::string& bytes) {
  constexpr size_t kLeftBytes = 64;
  constexpr size_t kLength = kBlockBytes - kLeftBytes - kFragmentHeaderBytes;
  std::string fragment(kBlockBytes - kLeftBytes, '\0');
  fragment[4] = static_cast<char>(kLength & 0xff);
  fragment[5] = static_cast<char>(kLength >> 8);
  fragment[6] = 1;  // whole
  PutCrc(std::string_view(fragment).substr(6), fragment.data());
  bytes.insert(0, fragment);
}

// Of fragments one behind the other, up to the first that is none.
void RepairLog(std::string& bytes) {
  size_t at = 0;
  while (at + kFragmentHeaderBytes <= bytes.size()) {
    const size_t block_left = kBlockBytes - at % kBlockBytes;
    const size_t length = Little<uint16_t>(bytes.data() + at + 4);
    if (block_left < kFragmentHeaderBytes) {
      at += block_left;
      continue;
    }
    if (kFragmentHeaderBytes + length > std::min(block_left, bytes.size() - at)) return;
    PutCrc(std::string_view(bytes).substr(at + 6, length + 1), bytes.data() + at);
    at += kFragmentHeaderBytes + length;
  }
}

constexpr size_t kFileHeaderBytes = 30;
constexpr size_t kFooterBytes = 32;
constexpr size_t kRecordHeaderBytes = 32;

// Magic, version and family of the header; magic and checksum of the footer.
void RepairBlobEnds(std::string& bytes) {
  constexpr uint32_t kMagic = 2'395'959;
  if (bytes.size() < kFileHeaderBytes + kFooterBytes) return;
  PutUint32(kMagic, bytes.data());
  PutUint32(1, bytes.data() + 4);
  PutUint32(static_cast<uint32_t>(Family::kChunks) + 1, bytes.data() + 8);
  char* const footer = bytes.data() + bytes.size() - kFooterBytes;
  PutUint32(kMagic, footer);
  PutCrc({footer, kFooterBytes - 4}, footer + kFooterBytes - 4);
}

// Of records one behind the other.
void RepairBlob(std::string& bytes) {
  size_t at = kFileHeaderBytes;
  while (at + kRecordHeaderBytes <= bytes.size()) {
    const uint64_t key_bytes = Little<uint64_t>(bytes.data() + at);
    const uint64_t value_bytes = Little<uint64_t>(bytes.data() + at + 8);
    const size_t left = bytes.size() - at - kRecordHeaderBytes;
    PutCrc(std::string_view(bytes).substr(at, 24), bytes.data() + at + 24);
    if (key_bytes > left || value_bytes > left - key_bytes) return;
    const size_t body_bytes = key_bytes + value_bytes;
    PutCrc(std::string_view(bytes).substr(at + kRecordHeaderBytes, body_bytes),
           bytes.data() + at + 28);
    at += kRecordHeaderBytes + body_bytes;
  }
}

std::vector<std::string> Writes(rocksdb::Env& env, std::vector<WalDamage>& damage) {
  std::vector<std::string> writes;
  const auto found = ScanWal(kDirectory, env, [&](std::string_view batch) {
    writes.emplace_back(batch);
    return absl::OkStatus();
  });
  Check(found.ok());
  damage = *found;
  return writes;
}

void FuzzLog(const std::string& bytes, rocksdb::Env& env) {
  Check(rocksdb::WriteStringToFile(&env, bytes, kLog).ok());
  std::vector<WalDamage> damage;
  const std::vector<std::string> writes = Writes(env, damage);
  size_t read_bytes = 0;
  for (const std::string& write : writes) read_bytes += write.size();
  Check(read_bytes <= bytes.size());
  for (const WalDamage& place : damage) Check(place.offset < bytes.size());
  Check(RewriteDamagedLogs(kDirectory, env).ok());
  Check(Writes(env, damage) == writes);
  Check(damage.empty());
}

void FuzzBlob(const std::string& bytes, rocksdb::Env& env) {
  Check(rocksdb::WriteStringToFile(&env, bytes, kBlob).ok());
  uint64_t records = 0;
  size_t read_bytes = 0;
  const auto scan = ScanBlobFile(kBlob, env, [&](std::string_view key, std::string_view value) {
    ++records;
    read_bytes += key.size() + value.size();
    return absl::OkStatus();
  });
  Check(scan.ok() && scan->records == records);
  Check(read_bytes <= bytes.size() && scan->damaged <= bytes.size());
  static_cast<void>(CheckBlobFileEnds(kBlob, env));
}

}  // namespace
}  // namespace neurontrace

// Bit 0 of the first byte: which file; bit 1: whether its checksums are made right; bit 2: whether
// a log begins near a block's end; bit 3: whether a blob file's ends are made right.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  if (size == 0) return 0;
  const bool is_log = (data[0] & 1) == 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (is_log && (data[0] & 4) != 0) PutAtBlockEnd(bytes);
  if ((data[0] & 2) != 0) is_log ? RepairLog(bytes) : RepairBlob(bytes);
  if (!is_log && (data[0] & 8) != 0) RepairBlobEnds(bytes);
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  Check(env->CreateDirIfMissing(kDirectory).ok());
  is_log ? FuzzLog(bytes, *env) : FuzzBlob(bytes, *env);
  return 0;
}
