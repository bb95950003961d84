// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_files.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "aggregator/store/store_errors.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

constexpr char kDoingArtifacts[] = "storing artifacts";
constexpr size_t kHexSize = 2 * kSha256Bytes;
// Partial files that nobody has continued for an hour are deleted: an agent retries within minutes.
constexpr uint64_t kPartialAgeMaxUs = 3'600'000'000;
// Free bytes that artifacts leave to the database, whose chunks are worth more than they are.
constexpr uint64_t kDiskReserveBytes = uint64_t{256} << 20;
constexpr size_t kReadBytes = size_t{1} << 20;

// Returns the raw hash that a file name spells, or nullopt for the name of any other file. Only
// lower case is accepted, as HexOf writes it, so each hash has one name.
std::optional<std::string> BytesOfHex(std::string_view hex) {
  if (hex.size() != kHexSize) return std::nullopt;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const size_t high = kDigits.find(hex[i]);
    const size_t low = kDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

// Converts an error of the disk. All errors of this file name the same activity.
absl::Status DiskStatus(const rocksdb::Status& status) {
  return FromRocksDb(status, kDoingArtifacts);
}

}  // namespace

ArtifactFiles::ArtifactFiles(std::string directory, rocksdb::Env& env)
    : directory_(std::move(directory)), env_(env), bytes_max_(limits::kArtifactStoreBytesDefault) {}

ArtifactFiles::~ArtifactFiles() = default;

// Two characters of the hash name a folder, so no directory gets more than a small part of all
// contents.
std::string ArtifactFiles::PlaceOf(std::string_view sha256) const {
  const std::string hex = HexOf(sha256);
  return directory_ + "/" + hex.substr(0, 2) + "/" + hex;
}

std::string ArtifactFiles::PartialOf(std::string_view sha256) const {
  return directory_ + "/partial/" + HexOf(sha256);
}

absl::Status ArtifactFiles::MakeDirectory(const std::string& path) const {
  return DiskStatus(env_.CreateDirIfMissing(path));
}

absl::Status ArtifactFiles::SyncDirectory(const std::string& path) const {
  std::unique_ptr<rocksdb::Directory> directory;
  RETURN_IF_ERROR(DiskStatus(env_.NewDirectory(path, &directory)));
  return DiskStatus(directory->Fsync());
}

// Sizes are taken from the files, so a changed or truncated file still counts with what it
// occupies.
absl::Status ArtifactFiles::Open() {
  const MutexLock lock(mutex_);
  if (!env_.FileExists(directory_).ok()) return absl::OkStatus();
  std::vector<std::string> folders;
  RETURN_IF_ERROR(DiskStatus(env_.GetChildren(directory_, &folders)));
  for (const std::string& folder : folders) {
    const bool is_partial = folder == "partial";
    if (!is_partial && (folder.size() != 2 || folder == "..")) continue;
    std::vector<std::string> names;
    RETURN_IF_ERROR(DiskStatus(env_.GetChildren(directory_ + "/" + folder, &names)));
    for (const std::string& name : names) {
      const auto sha256 = BytesOfHex(name);
      if (!sha256) continue;  // not a file of this class
      // Skips a link with such a name, which would expose a file outside the directory.
      struct stat about = {};
      const std::string file = fmt::format("{}/{}/{}", directory_, folder, name);
      if (lstat(file.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) continue;
      uint64_t size = 0;
      RETURN_IF_ERROR(DiskStatus(env_.GetFileSize(file, &size)));
      bytes_ += size;
      if (is_partial) {
        // Counted from now on, not from its last write, so agents get an hour to continue after a
        // restart.
        partials_[*sha256] = {.bytes = size, .used_us = env_.NowMicros()};
      } else {
        contents_[*sha256] = size;
      }
    }
  }
  return absl::OkStatus();
}

void ArtifactFiles::SetBytesMax(uint64_t bytes_max) {
  const MutexLock lock(mutex_);
  bytes_max_ = bytes_max;
}

bool ArtifactFiles::Has(const std::string& sha256) const {
  const MutexLock lock(mutex_);
  return contents_.contains(sha256);
}

// The size on the disk counts, not the reserved one: an upload may be running, and its bytes may be
// in buffers.
uint64_t ArtifactFiles::Received(const std::string& sha256) const {
  const MutexLock lock(mutex_);
  uint64_t size = 0;
  if (!partials_.contains(sha256) || !env_.GetFileSize(PartialOf(sha256), &size).ok()) return 0;
  return size;
}

std::set<std::string> ArtifactFiles::All() const {
  const MutexLock lock(mutex_);
  std::set<std::string> all;
  for (const auto& [sha256, bytes] : contents_) all.insert(sha256);
  return all;
}

uint64_t ArtifactFiles::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

size_t ArtifactFiles::size() const {
  const MutexLock lock(mutex_);
  return contents_.size();
}

// Does nothing for an unknown hash.
void ArtifactFiles::Forget(const std::string& sha256) {
  const auto partial = partials_.find(sha256);
  if (partial == partials_.end()) return;
  assert(bytes_ >= partial->second.bytes);
  bytes_ -= std::min(bytes_, partial->second.bytes);
  partials_.erase(partial);
  env_.DeleteFile(PartialOf(sha256)).PermitUncheckedError();  // or it was never made
}

void ArtifactFiles::RemoveStalePartials() {
  const uint64_t now = env_.NowMicros();
  std::vector<std::string> stale;
  for (const auto& [sha256, partial] : partials_) {
    if (!partial.receiving && now > partial.used_us + kPartialAgeMaxUs) stale.push_back(sha256);
  }
  for (const std::string& sha256 : stale) Forget(sha256);
  // One slot has to be free for the caller. Reserve limits those that receive to fewer than the
  // table holds, so an idle one is found first.
  if (partials_.size() < limits::kArtifactPartialsMax) return;
  const auto rests_longer = [](const auto& a, const auto& b) {
    return std::pair(a.second.receiving, a.second.used_us) <
           std::pair(b.second.receiving, b.second.used_us);
  };
  const auto oldest = std::min_element(partials_.begin(), partials_.end(), rests_longer);
  assert(!oldest->second.receiving);
  Forget(std::string(oldest->first));
}

absl::Status ArtifactFiles::Reserve(const std::string& sha256, uint64_t bytes) {
  const MutexLock lock(mutex_);
  RemoveStalePartials();
  const auto receiving = std::count_if(partials_.begin(), partials_.end(),
                                       [](const auto& item) { return item.second.receiving; });
  const auto known = partials_.find(sha256);
  const bool is_taken = known != partials_.end() && known->second.receiving;
  if (is_taken || static_cast<size_t>(receiving) >= limits::kArtifactUploadsMax) {
    return Unavailable(
        "{}", is_taken ? "it is already being received" : "too many artifacts are being received");
  }
  // A continued upload replaces the reservation of its earlier attempt. Subtractions stop at zero,
  // and the sum is compared without adding, as `bytes` comes from a peer and could overflow it.
  const uint64_t before = known == partials_.end() ? 0 : known->second.bytes;
  assert(bytes_ >= before);
  const uint64_t kept = bytes_ - std::min(bytes_, before);
  if (bytes > bytes_max_ || kept > bytes_max_ - bytes) {
    return ResourceExhausted("artifacts use {} of {} bytes", kept, bytes_max_);
  }
  uint64_t free_bytes = 0;
  // A file system that cannot report its free space is not a reason to refuse; a write then fails.
  const rocksdb::Status asked = env_.GetFreeSpace(directory_, &free_bytes);
  if (asked.ok() && free_bytes < kDiskReserveBytes + bytes) {
    return ResourceExhausted("the disk has {} bytes left", free_bytes);
  }
  partials_[sha256] = {.bytes = bytes, .used_us = env_.NowMicros(), .receiving = true};
  bytes_ = kept + bytes;
  return absl::OkStatus();
}

// Directories are made first, because Reserve asks for the free space of one.
absl::StatusOr<std::unique_ptr<ArtifactFiles::Upload>> ArtifactFiles::Receive(
    const std::string& sha256, uint64_t bytes) {
  RETURN_IF_ERROR(MakeDirectory(directory_));
  RETURN_IF_ERROR(MakeDirectory(directory_ + "/partial"));
  RETURN_IF_ERROR(Reserve(sha256, bytes));
  std::unique_ptr<Upload> upload(new Upload(*this, sha256, bytes));
  RETURN_IF_ERROR(TakeUp(*upload));
  return upload;
}

// Hashing what is there costs one pass over the file. The alternative, storing the state of the
// hash, would be one more thing that can be torn by a crash.
absl::Status ArtifactFiles::TakeUp(Upload& upload) const {
  const std::string path = PartialOf(upload.sha256_);
  // A partial file larger than the content belongs to a wrong size and is written from the start.
  uint64_t size = 0;
  if (env_.GetFileSize(path, &size).ok() && size <= upload.bytes_) {
    std::unique_ptr<rocksdb::SequentialFile> before;
    RETURN_IF_ERROR(DiskStatus(env_.NewSequentialFile(path, &before, {})));
    std::string room(kReadBytes, '\0');
    rocksdb::Slice piece;
    do {
      RETURN_IF_ERROR(DiskStatus(before->Read(room.size(), &piece, room.data())));
      upload.hash_.Update({piece.data(), piece.size()});
      upload.offset_ += piece.size();
    } while (!piece.empty());
    return DiskStatus(env_.ReopenWritableFile(path, &upload.file_, {}));
  }
  return DiskStatus(env_.NewWritableFile(path, &upload.file_, {}));
}

// A file that is missing already counts as removed.
absl::Status ArtifactFiles::Remove(const std::string& sha256) {
  const MutexLock lock(mutex_);
  const auto content = contents_.find(sha256);
  if (content == contents_.end()) return absl::OkStatus();
  const std::string path = PlaceOf(sha256);
  if (env_.FileExists(path).ok()) RETURN_IF_ERROR(DiskStatus(env_.DeleteFile(path)));
  assert(bytes_ >= content->second);
  bytes_ -= std::min(bytes_, content->second);
  contents_.erase(content);
  return absl::OkStatus();
}

// Does not hold the lock while reading: a content that is removed meanwhile stays readable through
// the open file.
absl::StatusOr<std::string> ArtifactFiles::Read(const std::string& sha256, uint64_t offset,
                                                size_t bytes_max) const {
  if (!Has(sha256)) return NotFound("there is no artifact {}", HexOf(sha256));
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  RETURN_IF_ERROR(DiskStatus(env_.NewRandomAccessFile(PlaceOf(sha256), &file, {})));
  std::string bytes(bytes_max, '\0');
  rocksdb::Slice piece;
  RETURN_IF_ERROR(DiskStatus(file->Read(offset, bytes_max, &piece, bytes.data())));
  return std::string(piece.data(), piece.size());
}

ArtifactFiles::Upload::Upload(ArtifactFiles& files, std::string sha256, uint64_t bytes)
    : files_(files), sha256_(std::move(sha256)), bytes_(bytes) {}

ArtifactFiles::Upload::~Upload() {
  if (file_ != nullptr) file_->Close().PermitUncheckedError();
  file_.reset();
  if (is_settled_) return;  // the entry may be another upload's by now
  const MutexLock lock(files_.mutex_);
  const auto partial = files_.partials_.find(sha256_);
  assert(partial != files_.partials_.end() && partial->second.receiving);
  // An attempt without a byte leaves no file and no entry behind.
  if (offset_ == 0) {
    files_.Forget(sha256_);
    return;
  }
  assert(offset_ <= bytes_ && files_.bytes_ >= partial->second.bytes - offset_);
  // Only bytes that have arrived stay reserved. Otherwise a sender that announces much and sends
  // little would use up the limit.
  files_.bytes_ -= std::min(files_.bytes_, partial->second.bytes - offset_);
  partial->second = {.bytes = offset_, .used_us = files_.env_.NowMicros(), .receiving = false};
}

// The hash is updated only after the bytes were written, so both stay at the same offset.
absl::Status ArtifactFiles::Upload::Append(std::string_view bytes) {
  assert(file_ != nullptr && offset_ <= bytes_);
  if (bytes.size() > bytes_ - offset_) {
    return absl::Status(absl::StatusCode::kOutOfRange, "more bytes than announced");
  }
  RETURN_IF_ERROR(DiskStatus(file_->Append({bytes.data(), bytes.size()})));
  hash_.Update(bytes);
  offset_ += bytes.size();
  return absl::OkStatus();
}

absl::Status ArtifactFiles::Upload::Finish() {
  assert(file_ != nullptr && offset_ <= bytes_);
  if (offset_ < bytes_)
    return FailedPrecondition("only {} of {} bytes have arrived", offset_, bytes_);
  if (hash_.Finish() != sha256_) {
    file_->Close().PermitUncheckedError();
    file_.reset();
    const MutexLock lock(files_.mutex_);
    files_.Forget(sha256_);
    is_settled_ = true;
    return DataLoss("the received bytes do not match their hash");
  }
  // The order makes the promise of the class true: bytes are on the disk before the name is, and
  // the name before any reference to it is written.
  RETURN_IF_ERROR(DiskStatus(file_->Sync()));
  RETURN_IF_ERROR(DiskStatus(file_->Close()));
  file_.reset();
  const std::string place = files_.PlaceOf(sha256_);
  const std::string folder = place.substr(0, place.rfind('/'));
  RETURN_IF_ERROR(files_.MakeDirectory(folder));
  RETURN_IF_ERROR(DiskStatus(files_.env_.RenameFile(files_.PartialOf(sha256_), place)));
  // A rename is durable once the directory is synced, and so is a new subdirectory once its parent
  // is.
  RETURN_IF_ERROR(files_.SyncDirectory(folder));
  RETURN_IF_ERROR(files_.SyncDirectory(files_.directory_));
  const MutexLock lock(files_.mutex_);
  is_settled_ = true;
  files_.partials_.erase(sha256_);  // its reserved bytes now belong to the content
  uint64_t& stored_bytes = files_.contents_[sha256_];
  assert(files_.bytes_ >= stored_bytes + bytes_);
  files_.bytes_ -= stored_bytes;  // of what another call has stored meanwhile
  stored_bytes = bytes_;
  return absl::OkStatus();
}

}  // namespace neurontrace
