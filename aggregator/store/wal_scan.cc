// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/wal_scan.h"

#include <algorithm>
#include <memory>

#include "aggregator/store/store_errors.h"
#include "base/crc32c.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kBlockBytes = 32'768;
constexpr size_t kHeaderBytes = 7;  // CRC-32C u32 (masked), length u16, type u8
enum FragmentType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

uint32_t Little32(const char* at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | static_cast<uint8_t>(at[i]);
  return value;
}

// One log file, block by block.
class LogScan {
 public:
  using Visit = std::function<absl::Status(std::string_view)>;
  LogScan(std::string file, const Visit& visit, std::vector<WalDamage>& damage)
      : file_(std::move(file)), visit_(visit), damage_(damage), first_damage_(damage.size()) {}

  absl::Status Block(std::string_view block) {
    const uint64_t block_at = offset_;
    offset_ += block.size();
    size_t at = 0;
    while (at + kHeaderBytes <= block.size()) {
      const char* const header = block.data() + at;
      const size_t length = static_cast<uint8_t>(header[4]) |
                            (static_cast<size_t>(static_cast<uint8_t>(header[5])) << 8);
      const uint8_t type = static_cast<uint8_t>(header[6]);
      if (type == kZero && length == 0) return absl::OkStatus();  // preallocated, never written
      if (type > kLast || at + kHeaderBytes + length > block.size() ||
          Crc32c(header + 6, length + 1) != Unmask(Little32(header))) {
        Damaged(block_at + at);
        return absl::OkStatus();  // the length may be wrong, too: go on with the next block
      }
      if (absl::Status status = Fragment(type, block_at + at, {header + kHeaderBytes, length});
          !status.ok()) {
        return status;
      }
      at += kHeaderBytes + length;
    }
    return absl::OkStatus();
  }

  // A record without its end is one that was being written.
  void End() {
    if (in_record_) Damaged(record_at_);
  }

 private:
  absl::Status Fragment(uint8_t type, uint64_t at, std::string_view bytes) {
    if (type == kFull || type == kFirst) {
      if (in_record_) Damaged(record_at_);
      record_.assign(bytes);
      record_at_ = at;
      in_record_ = type == kFirst;
    } else if (in_record_) {
      record_.append(bytes);
      in_record_ = type == kMiddle;
    } else {
      return absl::OkStatus();  // the rest of one whose beginning was damaged
    }
    if (in_record_) return absl::OkStatus();
    for (size_t i = first_damage_; i < damage_.size(); ++i) damage_[i].records_follow = true;
    return visit_(record_);
  }

  void Damaged(uint64_t at) {
    in_record_ = false;
    damage_.push_back({.file = file_, .offset = at});
  }

  const std::string file_;
  const Visit& visit_;
  std::vector<WalDamage>& damage_;
  const size_t first_damage_;
  uint64_t offset_ = 0;
  std::string record_;
  uint64_t record_at_ = 0;
  bool in_record_ = false;
};

absl::Status ScanLog(const std::string& path, const std::string& name, rocksdb::Env& env,
                     const LogScan::Visit& visit, std::vector<WalDamage>& damage) {
  const std::string doing = fmt::format("reading {}/{}", path, name);
  std::unique_ptr<rocksdb::SequentialFile> file;
  RETURN_IF_ERROR(FromRocksDb(env.NewSequentialFile(path + "/" + name, &file, {}), doing));
  LogScan scan(name, visit, damage);
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

}  // namespace

std::string WalDamage::ToString() const {
  return fmt::format("{} at byte {}: {}", file, offset,
                     records_follow ? "damaged in the middle" : "the last write is torn");
}

absl::StatusOr<std::vector<WalDamage>> ScanWal(
    const std::string& path, rocksdb::Env& env,
    const std::function<absl::Status(std::string_view batch)>& visit) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env.GetChildren(path, &names), fmt::format("reading {}", path)));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  // Numbers have six digits at least, and no zeros before more.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::vector<WalDamage> damage;
  for (const std::string& name : names) RETURN_IF_ERROR(ScanLog(path, name, env, visit, damage));
  return damage;
}

}  // namespace neurontrace
