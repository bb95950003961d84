// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/digest_store.h"

#include <memory>
#include <utility>
#include <vector>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kReading = "reading digests";

}  // namespace

std::unique_ptr<DigestReader> DigestStore::OpenReader() const {
  return std::make_unique<DigestReader>(std::unique_ptr<rocksdb::Iterator>(
      database_.db().NewIterator({}, database_.family(Family::kDigests))));
}

absl::Status DigestStore::Put(const CaptureId& capture, uint32_t stream,
                              std::span<const StoredDigest> digests) {
  rocksdb::WriteBatch writes;
  for (const StoredDigest& digest : digests) {
    writes.Put(database_.family(Family::kDigests),
               keys::Digest(capture, stream, digest.level, digest.first), digest.value);
  }
  return database_.Write(writes, /*sync=*/false, "storing digests");
}

absl::StatusOr<std::optional<StoredDigest>> DigestStore::Next(const CaptureId& capture,
                                                              uint32_t stream, uint8_t level,
                                                              uint64_t from) const {
  return OpenReader()->Next(capture, stream, level, from);
}

absl::StatusOr<std::optional<StoredDigest>> DigestStore::Last(const CaptureId& capture,
                                                              uint32_t stream,
                                                              uint8_t level) const {
  return OpenReader()->Last(capture, stream, level);
}

absl::Status DigestStore::DeleteRange(const CaptureId& capture, uint32_t stream, uint8_t level,
                                      uint64_t begin, uint64_t end) {
  rocksdb::WriteBatch writes;
  writes.DeleteRange(database_.family(Family::kDigests),
                     keys::Digest(capture, stream, level, begin),
                     keys::Digest(capture, stream, level, end));
  return database_.Write(writes, /*sync=*/false, "deleting digests");
}

absl::Status DigestStore::Delete(const CaptureId& capture) {
  const std::string begin = keys::Capture(capture);
  return database_.DeleteRange(Family::kDigests, begin, keys::PrefixEnd(begin));
}

absl::Status DigestStore::FinishDeletions() {
  std::vector<CaptureId> orphans;
  {
    const std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator({}, database_.family(Family::kDigests)));
    it->SeekToFirst();
    while (it->Valid()) {
      const auto key = keys::ParseDigest(ToView(it->key()));
      if (!key) return DataLoss("malformed key in {}", FamilyName(Family::kDigests));
      const std::string prefix = keys::Capture(key->capture);
      const auto record = database_.Get(Family::kCaptures, prefix);
      if (!record.ok() && !absl::IsNotFound(record.status())) return record.status();
      if (!record.ok()) orphans.push_back(key->capture);
      SeekPastPrefix(*it, prefix);
    }
    RETURN_IF_ERROR(FromRocksDb(it->status(), kReading));
  }
  for (const CaptureId& orphan : orphans) RETURN_IF_ERROR(Delete(orphan));
  return absl::OkStatus();
}

uint64_t DigestStore::Bytes() const {
  using Properties = rocksdb::DB::Properties;
  rocksdb::ColumnFamilyHandle* const family = database_.family(Family::kDigests);
  uint64_t files = 0;
  uint64_t memory = 0;
  database_.db().GetIntProperty(family, Properties::kTotalSstFilesSize, &files);
  database_.db().GetIntProperty(family, Properties::kCurSizeAllMemTables, &memory);
  return files + memory;
}

}  // namespace neurontrace
