// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_model_store.h"

#include <algorithm>
#include <memory>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/stored_message.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// The header has the highest row number, so it follows every row. It states how many rows precede
// it, and a version without a header is incomplete.
constexpr uint32_t kHeaderRow = UINT32_MAX;

// Over all rows in their order. The boundaries between rows are not covered; their number is stored
// beside it.
uint32_t Crc(const std::vector<std::string>& rows) {
  uint32_t crc = 0;
  for (const std::string& row : rows) crc = ExtendCrc32c(crc, row.data(), row.size());
  return crc;
}

// Makes the value of the header row.
std::string EncodeFrame(const ClockModelVersion& models) {
  v1::StoredClockModels message;
  message.set_rows(models.rows.size());
  message.set_crc32c(Crc(models.rows));
  message.set_header(models.header);
  return EncodeStored(std::move(message));
}

absl::StatusOr<v1::StoredClockModels> DecodeFrame(std::string_view value) {
  return DecodeStored<v1::StoredClockModels>(
      "clock models", value,
      [](v1::StoredClockModels& message) -> absl::StatusOr<v1::StoredClockModels> {
        return std::move(message);
      });
}

// Lists the versions with any row, in ascending order.
absl::StatusOr<std::vector<uint32_t>> VersionsIn(const Database& database,
                                                 const CaptureId& capture) {
  std::vector<uint32_t> versions;
  const std::string prefix = keys::Capture(capture);
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator({}, database.family(Family::kClockModels)));
  it->Seek(ToSlice(prefix));
  while (it->Valid() && it->key().starts_with(ToSlice(prefix))) {
    const auto key = keys::ParseClockModel(ToView(it->key()));
    if (!key) return DataLoss("malformed key in {}", FamilyName(Family::kClockModels));
    versions.push_back(key->version);
    // Skips the version's rows, which can be many: its number is all that is needed.
    it->Seek(ToSlice(keys::ClockModel(capture, key->version, kHeaderRow)));
    if (it->Valid() && ToView(it->key()) == keys::ClockModel(capture, key->version, kHeaderRow)) {
      it->Next();
    }
  }
  RETURN_IF_ERROR(FromRocksDb(it->status(), "reading clock models"));
  return versions;
}

// Reads one version and checks that it is whole. Fails with NOT_FOUND if it has no row at all.
absl::StatusOr<ClockModelVersion> ReadIn(const Database& database, const CaptureId& capture,
                                         uint32_t version) {
  ClockModelVersion models{.version = version};
  absl::StatusOr<v1::StoredClockModels> frame = DataLoss("no header");
  bool any = false;
  RETURN_IF_ERROR(database.ForEach(Family::kClockModels, keys::ClockModelVersion(capture, version),
                                   [&](std::string_view key, std::string_view value) {
                                     any = true;
                                     const auto parsed = keys::ParseClockModel(key);
                                     if (parsed && parsed->row == kHeaderRow) {
                                       frame = DecodeFrame(value);
                                       // A row out of order is one behind a hole; the header's
                                       // count then differs.
                                     } else if (parsed && parsed->row == models.rows.size()) {
                                       models.rows.emplace_back(value);
                                     }
                                     return absl::OkStatus();
                                   }));
  if (!any)
    return NotFound("capture {} has no version {} of its clock models", capture.ToString(),
                    version);
  if (!frame.ok() || frame->rows() != models.rows.size() || frame->crc32c() != Crc(models.rows)) {
    return DataLoss("capture {}: version {} of its clock models is incomplete", capture.ToString(),
                    version);
  }
  models.header = std::move(*frame->mutable_header());
  return models;
}

// Lists the captures that have any models, skipping from one to the next.
absl::StatusOr<std::vector<CaptureId>> CapturesIn(const Database& database) {
  std::vector<CaptureId> captures;
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator({}, database.family(Family::kClockModels)));
  it->SeekToFirst();
  while (it->Valid()) {
    const auto key = keys::ParseClockModel(ToView(it->key()));
    if (!key) return DataLoss("malformed key in {}", FamilyName(Family::kClockModels));
    captures.push_back(key->capture);
    SeekPastPrefix(*it, keys::Capture(key->capture));
  }
  RETURN_IF_ERROR(FromRocksDb(it->status(), "reading clock models"));
  return captures;
}

}  // namespace

// Everything is one write batch, so a crash leaves either the earlier or the new version. The
// limits bound that batch.
absl::Status ClockModelStore::Put(const CaptureId& capture, const ClockModelVersion& models) {
  if (models.version == 0) return InvalidArgument("clock models: versions start at 1");
  if (models.rows.size() > limits::kClockModelRowsMax) {
    return InvalidArgument("clock models: {} rows exceed the limit of {}", models.rows.size(),
                           limits::kClockModelRowsMax);
  }
  size_t bytes = 0;
  for (const std::string& row : models.rows) bytes += row.size();
  if (bytes > limits::kClockModelBytesMax) {
    return InvalidArgument("clock models: {} bytes exceed the limit of {}", bytes,
                           limits::kClockModelBytesMax);
  }
  rocksdb::WriteBatch writes;
  rocksdb::ColumnFamilyHandle* const family = database_.family(Family::kClockModels);
  // Deletions precede the rows in the batch, and RocksDB applies a batch in order.
  const uint32_t oldest =
      models.version > kVersionsKept - 1 ? models.version - (kVersionsKept - 1) : 0;
  writes.DeleteRange(family, keys::ClockModelVersion(capture, 0),
                     keys::ClockModelVersion(capture, oldest));
  writes.DeleteRange(family, keys::ClockModelVersion(capture, models.version),
                     keys::ClockModel(capture, models.version, kHeaderRow));
  for (size_t row = 0; row < models.rows.size(); ++row) {
    writes.Put(family, keys::ClockModel(capture, models.version, static_cast<uint32_t>(row)),
               models.rows[row]);
  }
  writes.Put(family, keys::ClockModel(capture, models.version, kHeaderRow), EncodeFrame(models));
  return database_.Write(writes, durability_ == Durability::kSynced, "storing clock models");
}

absl::StatusOr<std::optional<ClockModelVersion>> ClockModelStore::Newest(
    const CaptureId& capture) const {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> versions, Versions(capture));
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    auto models = Read(capture, *version);
    if (models.ok()) return *std::move(models);
    // An incomplete newest version is no reason to go without models: the one before is used.
    if (!absl::IsDataLoss(models.status())) return models.status();
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<uint32_t>> ClockModelStore::Versions(const CaptureId& capture) const {
  return VersionsIn(database_, capture);
}

absl::StatusOr<ClockModelVersion> ClockModelStore::Read(const CaptureId& capture,
                                                        uint32_t version) const {
  return ReadIn(database_, capture, version);
}

// A version without a valid header is skipped, as Newest skips it.
absl::StatusOr<std::optional<std::string>> ClockModelStore::NewestHeader(
    const CaptureId& capture) const {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> versions, Versions(capture));
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    const auto value =
        database_.Get(Family::kClockModels, keys::ClockModel(capture, *version, kHeaderRow));
    if (!value.ok() && !absl::IsNotFound(value.status())) return value.status();
    if (!value.ok()) continue;
    if (auto frame = DecodeFrame(*value); frame.ok()) return std::move(*frame->mutable_header());
  }
  return std::nullopt;
}

absl::Status ClockModelStore::Delete(const CaptureId& capture) {
  // What a crash restores belongs to no capture, and FinishDeletions removes it.
  const std::string begin = keys::Capture(capture);
  rocksdb::WriteBatch writes;
  writes.DeleteRange(database_.family(Family::kClockModels), begin, keys::PrefixEnd(begin));
  return database_.Write(writes, /*sync=*/false, "deleting clock models");
}

absl::Status ClockModelStore::FinishDeletions() {
  ASSIGN_OR_RETURN(const std::vector<CaptureId> captures, CapturesIn(database_));
  for (const CaptureId& capture : captures) {
    const auto record = database_.Get(Family::kCaptures, keys::Capture(capture));
    if (record.ok()) continue;
    if (!absl::IsNotFound(record.status())) return record.status();
    RETURN_IF_ERROR(Delete(capture));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CheckClockModels(const Database& database,
                                                          const CaptureId& capture) {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> versions, VersionsIn(database, capture));
  std::vector<std::string> faults;
  for (const uint32_t version : versions) {
    const auto models = ReadIn(database, capture, version);
    if (models.ok()) continue;
    if (!absl::IsDataLoss(models.status())) return models.status();
    faults.push_back(std::string(models.status().message()));
  }
  return faults;
}

// What is lost is fitted again; a version that is not whole would only be met again by every
// reader.
absl::Status DropBrokenClockModels(Database& database) {
  ASSIGN_OR_RETURN(const std::vector<CaptureId> captures, CapturesIn(database));
  rocksdb::WriteBatch writes;
  for (const CaptureId& capture : captures) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> versions, VersionsIn(database, capture));
    for (const uint32_t version : versions) {
      const absl::Status status = ReadIn(database, capture, version).status();
      if (status.ok()) continue;
      if (!absl::IsDataLoss(status)) return status;
      const std::string begin = keys::ClockModelVersion(capture, version);
      writes.DeleteRange(database.family(Family::kClockModels), begin, keys::PrefixEnd(begin));
    }
  }
  return database.Write(writes, /*sync=*/false, "deleting incomplete clock models");
}

}  // namespace neurontrace
