// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/artifact_files.h"
#include "aggregator/store/clock_model_store.h"
#include "aggregator/store/database.h"
#include "aggregator/store/found_damage.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_check.h"
#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// What was found of artifacts.
struct ArtifactCheck {
  uint64_t contents = 0;
  uint64_t bytes = 0;  // of the contents
  std::vector<std::pair<CaptureId, std::string>> faults;
  std::vector<std::string> notes;
};

// Returns what is wrong with the content that a reference names; empty: nothing.
absl::StatusOr<std::string> FaultOf(const ArtifactFiles& files,
                                    const ArtifactReference& reference) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  if (!files.Has(reference.sha256)) return "its content is missing";
  Sha256 sha;
  uint64_t offset = 0;
  // Read in pieces, so that the memory stays bounded.
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece, files.Read(reference.sha256, offset, kPieceBytes));
    if (piece.empty()) break;
    sha.Update(piece);
    offset += piece.size();
  }
  if (offset != reference.bytes) {
    return fmt::format("its content has {} bytes, not {}", offset, reference.bytes);
  }
  return sha.Finish() == reference.sha256 ? "" : "its content does not match its hash";
}

// Reads every content that a reference names and compares its size and hash. Reads the files
// itself, as opening an ArtifactStore would repair and thereby change the store.
absl::StatusOr<ArtifactCheck> CheckArtifacts(const Database& database,
                                             const std::string& directory) {
  ArtifactFiles files(directory, database.env());
  RETURN_IF_ERROR(files.Open());
  ArtifactCheck check;
  std::set<std::string> left = files.All();
  std::map<std::string, std::string> judged;  // hash to fault: each content is read once
  RETURN_IF_ERROR(database.ForEach(
      Family::kArtifacts, std::string(1, kReferenceKey),
      [&](std::string_view key, std::string_view value) {
        const auto reference = DecodeReference(key, value);
        if (!reference.ok()) {
          check.faults.emplace_back(CaptureId(), std::string(reference.status().message()));
          return absl::OkStatus();
        }
        left.erase(reference->sha256);
        auto known = judged.find(reference->sha256);
        if (known == judged.end()) {
          const auto fault = FaultOf(files, *reference);
          known = judged
                      .emplace(reference->sha256,
                               fault.ok() ? *fault : std::string(fault.status().message()))
                      .first;
          ++check.contents;
          check.bytes += reference->bytes;
        }
        if (known->second.empty()) return absl::OkStatus();
        check.faults.emplace_back(
            reference->capture_id,
            fmt::format("artifact {}: {}", reference->place.path(), known->second));
        return absl::OkStatus();
      }));
  if (!left.empty()) {
    check.notes.push_back(fmt::format(
        "{} artifact contents are unreferenced; the aggregator removes them when it starts",
        left.size()));
  }
  return check;
}

// Runs the checks and collects their faults. The order matters only for the report: damage of files
// first, as it explains much of what follows.
class StoreCheck {
 public:
  StoreCheck(const Database& database, std::string path, const StoreCheckOptions& options,
             StoreCheckReport& report)
      : database_(database), path_(std::move(path)), options_(options), report_(report) {}

  void Run() {
    Files();
    Records();
    // A capture can be named by any of these families, also if damage took its record.
    std::set<CaptureId> ids = Ids(Family::kCaptures);
    report_.captures = ids.size();
    for (const Family family : {Family::kStreams, Family::kChunks, Family::kChunkIndex}) {
      ids.merge(Ids(family));
    }
    ClockModels();
    CountChunks();
    for (const CaptureId& id : ids) Capture(id);
    Artifacts();
    if (options_.progress) options_.progress(total_, total_);
  }

  // Counts every fault and lists the first ones.
  void Fault(StoreFault fault) {
    ++report_.faults_total;
    if (report_.faults.size() < kStoreFaultsNamedMax) report_.faults.push_back(std::move(fault));
  }
  void Fault(const absl::Status& status) {
    if (!status.ok()) Fault({.what = std::string(status.message())});
  }

 private:
  // Table files have a checksum for each block. Chunks are in blob files, which Stream reads one by
  // one.
  void Files() {
    for (const WalDamage& damage : database_.wal_damage()) {
      if (damage.records_follow) {
        Fault({.what = "log " + damage.ToString()});
      } else {
        report_.notes.push_back("log " + damage.ToString());
      }
    }
    std::vector<rocksdb::LiveFileMetaData> files;
    database_.db().GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      ++report_.files;
      Fault(database_.VerifyTable(file.name.substr(file.name.find_first_not_of('/'))));
    }
  }

  // Every value of the small families can be decoded.
  void Records() {
    const auto decode = [this](Family family, const auto& read) {
      Fault(database_.ForEach(family, "", [&](std::string_view key, std::string_view value) {
        Fault(read(key, value));
        return absl::OkStatus();
      }));
    };
    decode(Family::kCaptures, [](std::string_view key, std::string_view value) {
      ASSIGN_OR_RETURN(const CaptureId id, CaptureId::FromBytes(key));
      return DecodeCaptureRecord(id, value).status();
    });
    decode(Family::kAgents, [](std::string_view, std::string_view value) {
      return DecodeAgentRecord(value).status();
    });
    decode(Family::kWorkers, [](std::string_view, std::string_view value) {
      return DecodeWorkerRecord(value).status();
    });
  }

  // Models of all captures that have any; each version has to be complete.
  void ClockModels() {
    for (const CaptureId& id : Ids(Family::kClockModels)) {
      const auto faults = CheckClockModels(database_, id);
      Fault(faults.status());
      if (!faults.ok()) continue;
      for (const std::string& fault : *faults) Fault({.what = fault});
    }
  }

  void Artifacts() {
    const auto check = CheckArtifacts(database_, path_ + "/artifacts");
    Fault(check.status());
    if (!check.ok()) return;
    report_.artifacts = check->contents;
    report_.artifact_bytes = check->bytes;
    for (const auto& [id, what] : check->faults) {
      Fault({.capture = id == CaptureId() ? std::nullopt : std::optional(id), .what = what});
    }
    report_.notes.insert(report_.notes.end(), check->notes.begin(), check->notes.end());
  }

  // Returns the captures that keys of a family name. Skips from one to the next, as chunks are
  // many.
  std::set<CaptureId> Ids(Family family) {
    std::set<CaptureId> ids;
    const std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator({}, database_.family(family)));
    it->SeekToFirst();
    while (it->Valid()) {
      const auto id = CaptureId::FromBytes(ToView(it->key()).substr(0, CaptureId::kBytes));
      if (!id.ok()) {
        Fault({.what = fmt::format("malformed key of {} bytes in {}", it->key().size(),
                                   FamilyName(family))});
        it->Next();
        continue;
      }
      ids.insert(*id);
      SeekPastPrefix(*it, id->bytes());
    }
    // Damage at the first key of a capture hides the captures behind it; their streams name them.
    Fault(FromRocksDb(it->status(), fmt::format("reading {}", FamilyName(family))));
    return ids;
  }

  // Only for the progress.
  void CountChunks() {
    Fault(
        database_.ForEach(Family::kStreams, "", [&](std::string_view key, std::string_view value) {
          const auto parsed = keys::ParseStream(key);
          const auto record =
              parsed ? DecodeStreamRecord(parsed->stream, value) : DataLoss("malformed key");
          if (record.ok()) total_ += record->chunks;
          return absl::OkStatus();
        }));
  }

  // Checks one capture: its record, then each stream with its chunks and index entries.
  void Capture(const CaptureId& id) {
    if (absl::IsNotFound(database_.Get(Family::kCaptures, id.bytes()).status())) {
      // Without damage of the log the only reason for a missing record is an unfinished deletion.
      if (database_.wal_damage().empty()) {
        report_.notes.push_back(
            fmt::format("capture {} is being deleted; the aggregator completes this when it starts",
                        id.ToString()));
        return;
      }
      Fault({.capture = id, .what = "its record is missing, but it has streams or chunks"});
    }
    std::map<uint32_t, StreamRecord> records;
    Fault(database_.ForEach(Family::kStreams, id.bytes(),
                            [&](std::string_view key, std::string_view value) {
                              const auto parsed = keys::ParseStream(key);
                              if (!parsed)
                                return DataLoss("malformed key of {} bytes in streams", key.size());
                              auto record = DecodeStreamRecord(parsed->stream, value);
                              if (!record.ok()) {
                                Fault({.capture = id,
                                       .stream = parsed->stream,
                                       .what = std::string(record.status().message())});
                              } else {
                                records.emplace(parsed->stream, *std::move(record));
                              }
                              return absl::OkStatus();
                            }));
    ReportStrayKeys(id, Family::kChunks, records);
    ReportStrayKeys(id, Family::kChunkIndex, records);
    for (const auto& [number, record] : records) Stream(id, record);
  }

  // Reports streams that have keys in a family but no record.
  void ReportStrayKeys(const CaptureId& id, Family family,
                       const std::map<uint32_t, StreamRecord>& records) {
    const std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator({}, database_.family(family)));
    uint64_t from = 0;
    while (from <= UINT32_MAX) {
      it->Seek(keys::Stream(id, static_cast<uint32_t>(from)));
      if (!it->Valid() || !it->key().starts_with(ToSlice(id.bytes()))) break;
      const auto key = keys::ParseStream(ToView(it->key()).substr(0, CaptureId::kBytes + 4));
      if (!key) break;
      if (!records.contains(key->stream)) {
        Fault({.capture = id,
               .stream = key->stream,
               .what = fmt::format("it has entries in {} but no record", FamilyName(family))});
      }
      from = uint64_t{key->stream} + 1;
    }
  }

  void Stream(const CaptureId& id, const StreamRecord& record) {
    StreamCheck check(database_, id, record, options_.examine,
                      [&](std::optional<uint64_t> sequence, std::string what) {
                        Fault({.capture = id,
                               .stream = record.number,
                               .sequence = sequence,
                               .what = std::move(what)});
                      });
    check.Run([this] {
      if (options_.progress && done_++ % 64 == 0) options_.progress(done_, total_);
    });
    ++report_.streams;
    report_.chunks += check.chunks();
    report_.events += check.events();
    report_.bytes += check.bytes();
  }

  const Database& database_;
  const std::string path_;
  const StoreCheckOptions& options_;
  StoreCheckReport& report_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

std::string StoreFault::ToString() const {
  std::string where;
  if (capture) where += fmt::format("capture {}, ", capture->ToString());
  if (stream) where += fmt::format("stream {}, ", *stream);
  if (sequence) where += fmt::format("chunk {}, ", *sequence);
  if (where.empty()) return what;
  where.resize(where.size() - 2);
  return where + ": " + what;
}

// Faults without a stream are only printed, because there is no record that could carry them.
absl::Status RememberFaults(const std::string& path, rocksdb::Env* env,
                            const StoreCheckReport& report) {
  rocksdb::Env& disk = env != nullptr ? *env : *rocksdb::Env::Default();
  std::vector<FoundDamage> found;
  for (const StoreFault& fault : report.faults) {
    if (!fault.capture || !fault.stream) continue;
    found.push_back(
        {.capture = *fault.capture,
         .stream = *fault.stream,
         .sequence = fault.sequence,
         .kind = RemarkKind::kStoreFault,
         .what = CleanText(
             fault.sequence ? fmt::format("chunk {}: {}", *fault.sequence, fault.what) : fault.what,
             limits::kRemarkDetailBytesMax)});
  }
  // A repeated check adds nothing.
  ASSIGN_OR_RETURN(const std::vector<FoundDamage> known, ReadFoundDamage(path, disk));
  std::erase_if(found, [&known](const FoundDamage& each) {
    return std::ranges::find(known, each) != known.end();
  });
  return AppendFoundDamage(path, disk, found);
}

absl::StatusOr<StoreCheckReport> CheckStore(const std::string& path, rocksdb::Env* env,
                                            const StoreCheckOptions& options) {
  // A database that RocksDB cannot open is the one fault that ends the check at once.
  StoreCheckReport report;
  const auto database = Database::OpenToRead(path, env);
  if (absl::IsDataLoss(database.status())) {
    report.faults_total = 1;
    report.faults.push_back({.what = std::string(database.status().message())});
    return report;
  }
  RETURN_IF_ERROR(database.status());
  StoreCheck(**database, path, options, report).Run();
  return report;
}

}  // namespace neurontrace
