// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_salvage.h"

#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "aggregator/store/blob_scan.h"
#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/clock_record.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store_errors.h"
#include "aggregator/store/store_files.h"
#include "aggregator/store/wal_scan.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns nullopt for RocksDB's own family and for those of a newer build.
std::optional<Family> FamilyOf(std::string_view name) {
  for (size_t i = 0; i < kFamilyCount; ++i) {
    if (FamilyName(static_cast<Family>(i)) == name) return static_cast<Family>(i);
  }
  return std::nullopt;
}

// Skips a row that cannot be read. Copied, it would make the new database fail as the old one did.
absl::Status Skip(SalvagedRecords& records) {
  ++records.damaged;
  return absl::OkStatus();
}

// An epoch whose value is damaged keeps its number; see SalvageEpoch.
void ContinueEpoch(std::string_view key, std::string_view value, SalvagedRecords& records) {
  auto epoch = SalvageEpoch(key, value);
  if (!epoch || *epoch != value) ++records.damaged;
  if (epoch) records.epochs[std::string(key)] = *std::move(epoch);
}

// Keeps a record that can be decoded. One that cannot be decoded shows that not every missing
// record was deleted.
void AddCapture(std::string_view key, std::string_view value, SalvagedRecords& records) {
  const auto id = CaptureId::FromBytes(key);
  auto record = id.ok() ? DecodeCaptureRecord(*id, value) : id.status();
  if (record.ok()) return records.Take(*std::move(record));
  ++records.damaged;
  records.captures_complete = false;  // this one had not been deleted
}

// A stream whose record is lost is rebuilt from its chunks.
void AddStream(std::string_view key, std::string_view value, SalvagedRecords& records) {
  const auto parsed = keys::ParseStream(key);
  auto record = parsed ? DecodeStreamRecord(parsed->stream, value) : DataLoss("malformed key");
  if (record.ok()) return records.Take(parsed->capture, *std::move(record));
  ++records.damaged;
}

// Handles one key and value of a family, from a table or the log.
absl::Status AddEntry(Family family, std::string_view key, std::string_view value,
                      const SalvageSinks& sinks, SalvagedRecords& records) {
  switch (family) {
    case Family::kMeta:
      if (key == "aggregator_id") records.aggregator_id = std::string(value);
      if (key == kClockRecordKey) records.clock_record = std::string(value);
      if (key.starts_with(kEpochKeyPrefix)) ContinueEpoch(key, value, records);
      return absl::OkStatus();
    case Family::kCaptures:
      AddCapture(key, value, records);
      return absl::OkStatus();
    case Family::kAgents:
      if (!DecodeAgentRecord(value).ok()) return Skip(records);
      records.agents[std::string(key)] = std::string(value);
      return absl::OkStatus();
    case Family::kWorkers:
      if (!DecodeWorkerRecord(value).ok()) return Skip(records);
      records.workers[std::string(key)] = std::string(value);
      return absl::OkStatus();
    case Family::kStreams:
      AddStream(key, value, records);
      return absl::OkStatus();
    case Family::kChunks:
      return sinks.chunk(key, value);
    case Family::kClockObservations:
      if (!IsClockEvidence(key, value)) {
        records.clocks.lost.push_back(LostBetween(key, key));
        return Skip(records);
      }
      return sinks.clock_evidence(key, value);
    case Family::kClockModels:
      return sinks.clock_model(key, value);
    case Family::kArtifacts:
      return sinks.artifact(key, value);
    default:
      return absl::OkStatus();  // written again from the chunks
  }
}

// Applies the writes of the log in their order. Column families appear by the numbers that they got
// when they were created, which follow the order of Family.
class LogReplay final : public rocksdb::WriteBatch::Handler {
 public:
  LogReplay(const SalvageSinks& sinks, SalvagedRecords& records)
      : sinks_(sinks), records_(records) {}

  rocksdb::Status PutCF(uint32_t number, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (number == 0 || number > kFamilyCount) return rocksdb::Status::OK();
    failed_ =
        AddEntry(static_cast<Family>(number - 1), ToView(key), ToView(value), sinks_, records_);
    return failed_.ok() ? rocksdb::Status::OK() : rocksdb::Status::Aborted();
  }
  rocksdb::Status DeleteCF(uint32_t number, const rocksdb::Slice& key) override {
    if (number == static_cast<uint32_t>(Family::kCaptures) + 1) {
      if (const auto id = CaptureId::FromBytes(ToView(key)); id.ok()) records_.captures.erase(*id);
    }
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteRangeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return rocksdb::Status::OK();  // only captures are deleted by range
  }

  const absl::Status& failed() const { return failed_; }

 private:
  const SalvageSinks& sinks_;
  SalvagedRecords& records_;
  absl::Status failed_;
};

// Records that something between two keys could not be read. `family` is nullopt if it is unknown;
// it may then have been any.
void RecordLost(std::optional<Family> family, const std::string& before, const std::string& after,
                SalvagedRecords& records) {
  ++records.damaged;
  if (!family || *family == Family::kCaptures) records.captures_complete = false;
  if (!family || *family == Family::kClockModels) records.clocks.models_lost = true;
  if (!family || *family == Family::kClockObservations) {
    records.clocks.lost.push_back(LostBetween(before, after));
  }
}

// Returns the family of a table that cannot be opened. Its properties contain the name uncompressed
// near the end of the file, after the last word of rocksdb.column.family.name
// (table/block_based/block_based_table_builder.cc).
std::optional<Family> FamilyInBytes(const std::string& file, rocksdb::Env& env) {
  constexpr uint64_t kTailBytes = 1 << 20;
  uint64_t bytes = 0;
  std::unique_ptr<rocksdb::RandomAccessFile> table;
  if (!env.GetFileSize(file, &bytes).ok() || !env.NewRandomAccessFile(file, &table, {}).ok()) {
    return std::nullopt;
  }
  const uint64_t tail_bytes = std::min(bytes, kTailBytes);
  std::string buffer(tail_bytes, '\0');
  rocksdb::Slice tail;
  if (!table->Read(bytes - tail_bytes, tail_bytes, &tail, buffer.data()).ok()) return std::nullopt;
  std::optional<Family> found;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    if (ToView(tail).find(fmt::format("name{}", FamilyName(family))) == std::string_view::npos) {
      continue;
    }
    if (found) return std::nullopt;
    found = family;
  }
  return found;
}

// Reads a table from both ends, as an iterator cannot pass a damaged block: forward to the damage,
// then backward down to the last key that was read. What lies between the two is lost.
void ReadTable(const std::string& file, rocksdb::Env& env, const SalvageSinks& sinks,
               SalvagedRecords& records) {
  rocksdb::SstFileReader reader(rocksdb::Options(DatabaseOptions(&env), {}));
  if (!reader.Open(file).ok()) return RecordLost(FamilyInBytes(file, env), "", "", records);
  const auto family = FamilyOf(reader.GetTableProperties()->column_family_name);
  if (!family || *family == Family::kChunks) return;  // values are in blob files
  const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator({}));
  const auto take = [&] {
    if (!AddEntry(*family, ToView(it->key()), ToView(it->value()), sinks, records).ok()) {
      ++records.damaged;
    }
    return it->key().ToString();
  };
  std::string before;  // the last key in front of the damage
  for (it->SeekToFirst(); it->Valid(); it->Next()) before = take();
  if (it->status().ok()) return;
  std::string after;
  for (it->SeekToLast(); it->Valid() && ToView(it->key()) > before; it->Prev()) after = take();
  RecordLost(family, before, after, records);
}

}  // namespace

void SalvagedRecords::Take(CaptureRecord record) {
  // Each of these fields only moves forward, and the lists in the sum only grow.
  const auto age = [](const CaptureRecord& of) {
    const uint64_t first_execution = of.begin ? of.begin->first_execution : 0;
    return std::tuple(HasEnded(of.state), of.ended_realtime_ns, of.stopped_realtime_ns,
                      of.armed_realtime_ns, first_execution,
                      of.warnings.size() + of.agents.size() + of.workers.size());
  };
  const auto [it, is_new] = captures.try_emplace(record.id, record);
  if (!is_new && age(record) >= age(it->second)) it->second = std::move(record);
}

void SalvagedRecords::Take(CaptureId capture, StreamRecord record) {
  const auto [it, is_new] = streams.try_emplace({capture, record.number}, record);
  // Expiry moves first_sequence but not the cursor, so both are compared.
  const auto age = [](const StreamRecord& of) {
    return std::pair(of.next_sequence, of.first_sequence);
  };
  if (!is_new && age(record) >= age(it->second)) it->second = std::move(record);
}

// In this order, as each step knows more than the one before: tables, blob files, and the log with
// the latest writes.
absl::StatusOr<SalvagedRecords> SalvageFiles(const std::string& path, rocksdb::Env& env,
                                             const SalvageSinks& sinks) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env.GetChildren(path, &names), fmt::format("reading {}", path)));
  RETURN_IF_ERROR(CheckStoreFiles(path, names));
  SortByNumber(names);  // later files have later records
  SalvagedRecords records;
  for (const std::string& name : names) {
    if (IsTableFile(name)) ReadTable(path + "/" + name, env, sinks, records);
  }
  for (const std::string& name : names) {
    if (!IsBlobFile(name)) continue;
    ASSIGN_OR_RETURN(const BlobScan scan, ScanBlobFile(path + "/" + name, env, sinks.chunk));
    records.damaged += scan.damaged;
  }
  ASSIGN_OR_RETURN(const std::vector<WalDamage> damage,
                   ScanWal(path, env, [&](std::string_view bytes) {
                     LogReplay replay(sinks, records);
                     rocksdb::WriteBatch batch{std::string(bytes)};
                     const rocksdb::Status read = batch.Iterate(&replay);
                     if (!read.ok() && replay.failed().ok()) ++records.damaged;
                     return replay.failed();
                   }));
  for (const WalDamage& place : damage) {
    if (!place.records_follow) continue;  // a torn end was never acknowledged
    ++records.damaged;
    records.captures_complete = false;
    records.clocks.writes_lost = true;
  }
  return records;
}

}  // namespace neurontrace
