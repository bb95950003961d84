// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/wal_scan.h"

#include <algorithm>
#include <memory>

#include "aggregator/store/rocksdb_bytes.h"
#include "aggregator/store/store_errors.h"
#include "aggregator/store/store_files.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// As in RocksDB, db/log_format.h.
constexpr size_t kBlockBytes = 32'768;
constexpr size_t kHeaderBytes = 7;  // CRC-32C u32 (masked), length u16, type u8
// RocksDB, db/log_format.h. Logs are not recycled here, so the types for that do not occur.
enum FragmentType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// Returns the length field of the fragment whose header begins at `at`.
size_t LengthAt(std::string_view block, size_t at) {
  return static_cast<uint8_t>(block[at + 4]) |
         (static_cast<size_t>(static_cast<uint8_t>(block[at + 5])) << 8);
}

// The checksum covers the type and the contents; the length is only confirmed by it.
bool IsFragment(std::string_view block, size_t at) {
  const uint8_t type = static_cast<uint8_t>(block[at + 6]);
  const size_t length = LengthAt(block, at);
  return type >= kFull && type <= kLast && at + kHeaderBytes + length <= block.size() &&
         Crc32c(block.data() + at + 6, length + 1) ==
             UnmaskCrc(Little<uint32_t>(block.data() + at));
}

bool IsZero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Scans one log file, block by block.
class LogScan {
 public:
  LogScan(std::string file, const VisitBatch& visit, size_t record_bytes_max,
          std::vector<WalDamage>& damage)
      : file_(std::move(file)),
        visit_(visit),
        record_bytes_max_(record_bytes_max),
        damage_(damage),
        followed_(damage.size()) {}

  absl::Status Block(std::string_view block) {
    const uint64_t block_at = offset_;
    offset_ += block.size();
    size_t at = 0;
    while (at + kHeaderBytes <= block.size()) {
      const uint8_t type = static_cast<uint8_t>(block[at + 6]);
      const size_t length = LengthAt(block, at);
      // The rest of the block was preallocated and never written. A header of zeros with anything
      // behind it is damage.
      if (type == kZero && length == 0 && IsZero(block.substr(at))) return absl::OkStatus();
      if (!IsFragment(block, at)) {
        Damaged(block_at + at);
        // The length may be wrong as well: the next fragment is wherever a checksum is right.
        do ++at;
        while (at + kHeaderBytes <= block.size() && !IsFragment(block, at));
        continue;
      }
      if (absl::Status status =
              Fragment(type, block_at + at, block.substr(at + kHeaderBytes, length));
          !status.ok()) {
        return status;
      }
      at += kHeaderBytes + length;
    }
    return absl::OkStatus();
  }

  // A record without its last fragment was being written.
  void End() {
    if (in_record_) Damaged(record_at_);
  }

 private:
  // Joins fragments to records. Calls `visit_` for a complete one and fails with its error.
  absl::Status Fragment(uint8_t type, uint64_t at, std::string_view bytes) {
    if (type == kFull || type == kFirst) {
      if (in_record_) Damaged(record_at_);
      record_.assign(bytes);
      record_at_ = at;
      in_record_ = type == kFirst;
    } else if (in_record_) {
      if (record_.size() + bytes.size() > record_bytes_max_) {
        Damaged(record_at_);
        return absl::OkStatus();
      }
      record_.append(bytes);
      in_record_ = type == kMiddle;
    } else {
      return absl::OkStatus();  // the rest of a record with a damaged beginning
    }
    if (in_record_) return absl::OkStatus();
    // Only now is it known that earlier damage was not the end of the log.
    for (; followed_ < damage_.size(); ++followed_) damage_[followed_].records_follow = true;
    return visit_(record_);
  }

  // Records a place and gives up the record that was being joined.
  void Damaged(uint64_t at) {
    in_record_ = false;
    // The first place of a log is always listed, so that further ones are counted at their own log.
    if (damage_.size() < limits::kWalDamageNamedMax || damage_.back().file != file_) {
      damage_.push_back({.file = file_, .offset = at});
    } else {
      ++damage_.back().further;
    }
  }

  const std::string file_;
  const VisitBatch& visit_;
  const size_t record_bytes_max_;
  std::vector<WalDamage>& damage_;
  size_t followed_;  // how many of `damage_` are known to be followed, or are of other logs
  uint64_t offset_ = 0;
  std::string record_;
  uint64_t record_at_ = 0;
  bool in_record_ = false;
};

// Scans one log. Fails with the error of reading or of `visit`; damage is no error.
absl::Status ScanLog(const std::string& path, const std::string& name, rocksdb::Env& env,
                     const VisitBatch& visit, size_t record_bytes_max,
                     std::vector<WalDamage>& damage) {
  const std::string doing = fmt::format("reading {}/{}", path, name);
  std::unique_ptr<rocksdb::SequentialFile> file;
  RETURN_IF_ERROR(FromRocksDb(env.NewSequentialFile(path + "/" + name, &file, {}), doing));
  LogScan scan(name, visit, record_bytes_max, damage);
  std::string buffer(kBlockBytes, '\0');
  while (true) {
    rocksdb::Slice block;
    RETURN_IF_ERROR(FromRocksDb(file->Read(kBlockBytes, &block, buffer.data()), doing));
    if (block.empty()) break;
    RETURN_IF_ERROR(scan.Block({block.data(), block.size()}));
    if (block.size() < kBlockBytes) break;
  }
  scan.End();
  return absl::OkStatus();
}

// Writes records in RocksDB's format.
class LogWriter {
 public:
  explicit LogWriter(rocksdb::WritableFile& file) : file_(file) {}

  rocksdb::Status Add(std::string_view record) {
    bool is_first = true;
    do {
      const size_t left = kBlockBytes - in_block_;
      // A header never spans blocks; the rest is filled with zeros.
      if (left < kHeaderBytes) {
        if (auto status = Append(std::string(left, '\0')); !status.ok()) return status;
        in_block_ = 0;
        continue;
      }
      const size_t length = std::min(record.size(), left - kHeaderBytes);
      const bool is_last = length == record.size();
      const FragmentType type = is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle);
      if (auto status = Append(Fragment(type, record.substr(0, length))); !status.ok())
        return status;
      record.remove_prefix(length);
      is_first = false;
      if (is_last) return rocksdb::Status::OK();
    } while (true);
  }

 private:
  static std::string Fragment(FragmentType type, std::string_view bytes) {
    std::string fragment(kHeaderBytes, '\0');
    fragment.append(bytes);
    fragment[4] = static_cast<char>(bytes.size() & 0xff);
    fragment[5] = static_cast<char>(bytes.size() >> 8);
    fragment[6] = static_cast<char>(type);
    PutCrc(std::string_view(fragment).substr(6), fragment.data());
    return fragment;
  }

  rocksdb::Status Append(const std::string& bytes) {
    in_block_ = (in_block_ + bytes.size()) % kBlockBytes;
    return file_.Append(bytes);
  }

  rocksdb::WritableFile& file_;
  size_t in_block_ = 0;
};

// Lists the logs in the order in which they were written.
absl::StatusOr<std::vector<std::string>> LogsIn(const std::string& path, rocksdb::Env& env) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env.GetChildren(path, &names), fmt::format("reading {}", path)));
  RETURN_IF_ERROR(CheckStoreFiles(path, names));
  std::erase_if(names, [](const std::string& name) { return !IsWalFile(name); });
  SortByNumber(names);
  return names;
}

}  // namespace

std::string WalDamage::ToString() const {
  std::string text =
      fmt::format("{} at byte {}: {}", file, offset,
                  records_follow ? "damaged in the middle" : "the last write is torn");
  if (further > 0) text += fmt::format(", and {} further places", further);
  return text;
}

absl::StatusOr<std::vector<WalDamage>> ScanWal(const std::string& path, rocksdb::Env& env,
                                               const VisitBatch& visit, size_t record_bytes_max) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, LogsIn(path, env));
  std::vector<WalDamage> damage;
  for (const std::string& name : names) {
    RETURN_IF_ERROR(ScanLog(path, name, env, visit, record_bytes_max, damage));
  }
  return damage;
}

absl::Status RewriteDamagedLogs(const std::string& path, rocksdb::Env& env) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, LogsIn(path, env));
  for (const std::string& name : names) {
    std::vector<WalDamage> damage;
    const auto pass = [](std::string_view) { return absl::OkStatus(); };
    // Once to see whether there is damage, once more to copy: most logs are whole and stay
    // untouched.
    RETURN_IF_ERROR(ScanLog(path, name, env, pass, limits::kWalRecordBytesMax, damage));
    if (damage.empty()) continue;
    const std::string file = path + "/" + name;
    const std::string doing = fmt::format("rewriting {}", file);
    const std::string whole = fmt::format("{}{}", file, kWholeWalSuffix);
    const std::string replaced = fmt::format("{}{}", file, kDamagedWalSuffix);
    std::unique_ptr<rocksdb::WritableFile> out;
    RETURN_IF_ERROR(FromRocksDb(env.NewWritableFile(whole, &out, {}), doing));
    LogWriter writer(*out);
    RETURN_IF_ERROR(ScanLog(
        path, name, env,
        [&](std::string_view batch) { return FromRocksDb(writer.Add(batch), doing); },
        limits::kWalRecordBytesMax, damage));
    RETURN_IF_ERROR(FromRocksDb(out->Sync(), doing));
    RETURN_IF_ERROR(FromRocksDb(out->Close(), doing));
    // The log always exists under its name: the damaged one gets a second name, and then the whole
    // one replaces the first. A crash in between leaves that second name, which is deleted here.
    env.DeleteFile(replaced).PermitUncheckedError();
    RETURN_IF_ERROR(FromRocksDb(env.LinkFile(file, replaced), doing));
    RETURN_IF_ERROR(FromRocksDb(env.RenameFile(whole, file), doing));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
