// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/blob_scan.h"

#include <algorithm>
#include <memory>

#include "aggregator/store/database_options.h"
#include "aggregator/store/rocksdb_bytes.h"
#include "aggregator/store/store_errors.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Layout of RocksDB's blob files (db/blob/blob_log_format.h). All numbers are little endian.
//
// Header: magic u32, version u32, column family u32, flags u8, compression u8, expiration 2 x u64.
// Record: key length u64, value length u64, expiration u64, CRC-32C of these u32,
//         CRC-32C of key and value u32, key, value.
// Footer: magic u32, blob count u64, expiration 2 x u64, CRC-32C u32.
// Checksums are masked, see rocksdb_bytes.h.
constexpr size_t kFileHeaderBytes = 30;
constexpr size_t kFooterBytes = 32;
constexpr size_t kRecordHeaderBytes = 32;
constexpr uint32_t kMagic = 2'395'959;
constexpr uint32_t kBlobVersion = 1;
// All keys of family `chunks` have this length. It distinguishes the beginning of a record from
// other bytes before a checksum is computed, which would be slow at every byte of a damaged
// stretch.
constexpr uint64_t kKeyBytes = CaptureId::kBytes + 4 + 8;
// No stored chunk is larger than a message: a greater length is damage, not a reason to allocate.
constexpr uint64_t kValueBytesMax = limits::kGrpcMessageBytesMax;
constexpr size_t kWindowBytes = size_t{16} << 20;  // holds the largest record with room to spare
static_assert(kRecordHeaderBytes + kKeyBytes + kValueBytesMax < kWindowBytes);

// A view of a file's bytes from a moving position on, which reads as needed and never goes back.
class Window {
 public:
  Window(rocksdb::SequentialFile& file, std::string doing)
      : file_(file), doing_(std::move(doing)), scratch_(size_t{128} << 10, '\0') {}

  // Makes at least `bytes` visible in rest(), or as many as the file still has.
  absl::Status Require(size_t bytes) {
    if (rest().size() >= bytes || ended_) return absl::OkStatus();
    buffer_.erase(0, at_);
    at_ = 0;
    while (buffer_.size() < bytes && !ended_) {
      rocksdb::Slice read;
      if (auto status = FromRocksDb(file_.Read(scratch_.size(), &read, scratch_.data()), doing_);
          !status.ok()) {
        return status;
      }
      ended_ = read.empty();
      buffer_.append(read.data(), read.size());
    }
    return absl::OkStatus();
  }
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }
  void Pass(size_t bytes) { at_ += std::min(bytes, buffer_.size() - at_); }

 private:
  rocksdb::SequentialFile& file_;
  const std::string doing_;
  std::string scratch_;
  std::string buffer_;
  size_t at_ = 0;
  bool ended_ = false;
};

// Returns whether a record's header begins here, and the length of the record's value.
bool IsRecordHeader(std::string_view bytes, uint64_t& value_bytes) {
  if (bytes.size() < kRecordHeaderBytes || Little<uint64_t>(bytes.data()) != kKeyBytes)
    return false;
  value_bytes = Little<uint64_t>(bytes.data() + 8);
  return value_bytes <= kValueBytesMax &&
         Crc32c(bytes.data(), 24) == UnmaskCrc(Little<uint32_t>(bytes.data() + 24));
}

}  // namespace

absl::StatusOr<BlobScan> ScanBlobFile(
    const std::string& file, rocksdb::Env& env,
    const std::function<absl::Status(std::string_view key, std::string_view value)>& visit) {
  const std::string doing = fmt::format("reading {}", file);
  std::unique_ptr<rocksdb::SequentialFile> bytes;
  RETURN_IF_ERROR(FromRocksDb(env.NewSequentialFile(file, &bytes, {}), doing));
  Window window(*bytes, doing);
  BlobScan scan;
  // The header is skipped without a look: records are readable even where it is damaged.
  RETURN_IF_ERROR(window.Require(kFileHeaderBytes));
  window.Pass(kFileHeaderBytes);
  bool in_damage = false;
  while (true) {
    RETURN_IF_ERROR(window.Require(kRecordHeaderBytes));
    if (window.rest().size() < kRecordHeaderBytes) return scan;
    uint64_t value_bytes = 0;
    if (!IsRecordHeader(window.rest(), value_bytes)) {
      const bool is_footer =
          window.rest().size() == kFooterBytes && Little<uint32_t>(window.rest().data()) == kMagic;
      if (!in_damage && !is_footer) ++scan.damaged;
      in_damage = true;
      window.Pass(1);  // the next record may begin at any byte
      continue;
    }
    in_damage = false;
    const size_t whole = kRecordHeaderBytes + kKeyBytes + value_bytes;
    RETURN_IF_ERROR(window.Require(whole));
    const std::string_view record = window.rest().substr(0, whole);
    const std::string_view body = record.substr(kRecordHeaderBytes);
    if (record.size() < whole ||
        Crc32c(body.data(), body.size()) != UnmaskCrc(Little<uint32_t>(record.data() + 28))) {
      ++scan.damaged;
    } else {
      ++scan.records;
      RETURN_IF_ERROR(visit(body.substr(0, kKeyBytes), body.substr(kKeyBytes)));
    }
    window.Pass(whole);
  }
}

absl::Status CheckBlobFileEnds(const std::string& file, rocksdb::Env& env) {
  const std::string doing = fmt::format("checking {}", file);
  uint64_t size = 0;
  RETURN_IF_ERROR(FromRocksDb(env.GetFileSize(file, &size), doing));
  if (size < kFileHeaderBytes + kFooterBytes)
    return DataLoss("{}: it has only {} bytes", doing, size);
  std::unique_ptr<rocksdb::RandomAccessFile> bytes;
  RETURN_IF_ERROR(FromRocksDb(env.NewRandomAccessFile(file, &bytes, {}), doing));
  // Serves both reads, one after the other: the views of the header are no longer used by then.
  std::string scratch(kFooterBytes, '\0');
  rocksdb::Slice header;
  RETURN_IF_ERROR(FromRocksDb(bytes->Read(0, kFileHeaderBytes, &header, scratch.data()), doing));
  // Every byte is fixed for files that this program's options produce: no expiration, no
  // compression. RocksDB refuses to read the file if one differs. The family's number is one higher
  // than ours, as RocksDB's default family has number 0.
  const std::string_view rest(header.data() + 12, kFileHeaderBytes - 12);
  if (header.size() < kFileHeaderBytes || Little<uint32_t>(header.data()) != kMagic ||
      Little<uint32_t>(header.data() + 4) != kBlobVersion ||
      Little<uint32_t>(header.data() + 8) != static_cast<uint32_t>(Family::kChunks) + 1 ||
      rest.find_first_not_of('\0') != std::string_view::npos) {
    return DataLoss("{}: its header is damaged", doing);
  }
  rocksdb::Slice footer;
  RETURN_IF_ERROR(
      FromRocksDb(bytes->Read(size - kFooterBytes, kFooterBytes, &footer, scratch.data()), doing));
  if (footer.size() < kFooterBytes || Little<uint32_t>(footer.data()) != kMagic ||
      Crc32c(footer.data(), 28) != UnmaskCrc(Little<uint32_t>(footer.data() + 28))) {
    return DataLoss("{}: its footer is damaged", doing);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
