// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/table_verify.h"

#include <vector>

#include "aggregator/store/blob_scan.h"
#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_record.h"
#include "base/status.h"

namespace neurontrace {
namespace {

absl::Status VerifyRecords(const Database& database) {
  RETURN_IF_ERROR(database.ForEach(
      Family::kCaptures, "", [](std::string_view key, std::string_view value) -> absl::Status {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("a key of {} bytes in captures", key.size());
        return DecodeCaptureRecord(*id, value).status();
      }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kStreams, "", [](std::string_view key, std::string_view value) -> absl::Status {
        const auto parsed = keys::ParseStream(key);
        if (!parsed) return DataLoss("a key of {} bytes in streams", key.size());
        return DecodeStreamRecord(parsed->stream, value).status();
      }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kAgents, "",
      [](std::string_view, std::string_view value) { return DecodeAgentRecord(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kWorkers, "",
      [](std::string_view, std::string_view value) { return DecodeWorkerRecord(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kMeta, kEpochKeyPrefix,
      [](std::string_view, std::string_view value) { return DecodeEpoch(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kClockModels, "", [](std::string_view key, std::string_view) -> absl::Status {
        if (keys::ParseClockModel(key)) return absl::OkStatus();
        return DataLoss("a key of {} bytes in {}", key.size(), FamilyName(Family::kClockModels));
      }));
  // What evidence says is looked at by who needs it: there is much of it.
  return database.ForEach(Family::kClockObservations, "",
                          [](std::string_view key, std::string_view) -> absl::Status {
                            if (HostOfEvidenceKey(key)) return absl::OkStatus();
                            return DataLoss("a key of {} bytes in {}", key.size(),
                                            FamilyName(Family::kClockObservations));
                          });
}

// RocksDB compacts from the moment it is open, and would remove files that are still to be read.
class FilesStay {
 public:
  explicit FilesStay(rocksdb::DB& db) : db_(db), status_(db.DisableFileDeletions()) {}
  ~FilesStay() { db_.EnableFileDeletions(/*force=*/false).PermitUncheckedError(); }
  FilesStay(const FilesStay&) = delete;
  FilesStay& operator=(const FilesStay&) = delete;
  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Status status_;
};

}  // namespace

absl::Status VerifyTables(const Database& database) {
  const FilesStay files_stay(database.db());
  RETURN_IF_ERROR(FromRocksDb(files_stay.status(), "verifying tables"));
  std::vector<rocksdb::LiveFileMetaData> tables;
  database.db().GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    RETURN_IF_ERROR(database.VerifyTable(table.name.substr(table.name.find_first_not_of('/'))));
  }
  rocksdb::ColumnFamilyMetaData chunks;
  database.db().GetColumnFamilyMetaData(database.family(Family::kChunks), &chunks);
  for (const rocksdb::BlobMetaData& blob : chunks.blob_files) {
    const std::string name = blob.blob_file_name.substr(blob.blob_file_name.find_first_not_of('/'));
    RETURN_IF_ERROR(CheckBlobFileEnds(database.path() + "/" + name, database.env()));
  }
  return VerifyRecords(database);
}

}  // namespace neurontrace
