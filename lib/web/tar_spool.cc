// SPDX-License-Identifier: Apache-2.0
#include "lib/web/tar_spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kPieceBytes = 1u << 20;
// Bytes of a path, and the largest size, that a header of 1988 holds without a record of pax.
constexpr size_t kNameBytesMax = 100;
constexpr uint64_t kHeaderSizeMax = (uint64_t{1} << 33) - 1;

std::string Padding(uint64_t bytes) {
  return std::string((kBlockBytes - bytes % kBlockBytes) % kBlockBytes, '\0');
}

// Returns a header block; a path or a size that it cannot hold is cut, and a pax record has it.
std::string HeaderBlock(std::string_view path, char type, uint64_t bytes, uint64_t modified_s) {
  std::string block(kBlockBytes, '\0');
  const auto put = [&block](size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  put(0, path.substr(0, kNameBytesMax));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", std::min(bytes, kHeaderSizeMax)));
  put(136, fmt::format("{:011o}", std::min(modified_s, kHeaderSizeMax)));
  put(148, "        ");
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  // The checksum is the sum of the block's bytes, with blanks in its own place.
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0u, [](unsigned all, char c) {
    return all + static_cast<unsigned char>(c);
  });
  put(148, std::string_view(fmt::format("{:06o}", sum)));
  block[154] = '\0';
  return block;
}

// Returns "LENGTH KEY=VALUE\n", where LENGTH counts the whole record, its own digits included.
std::string PaxRecord(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (fmt::formatted_size("{}", length) + rest != length) {
    length = fmt::formatted_size("{}", length) + rest;
  }
  return fmt::format("{} {}={}\n", length, key, value);
}

// Returns everything before the bytes of a file.
std::string HeaderOf(std::string_view path, uint64_t bytes, uint64_t modified_s) {
  std::string records;
  if (path.size() > kNameBytesMax) records += PaxRecord("path", path);
  if (bytes > kHeaderSizeMax) records += PaxRecord("size", fmt::format("{}", bytes));
  std::string header;
  if (!records.empty()) {
    header = HeaderBlock("pax_header", 'x', records.size(), modified_s) + records +
             Padding(records.size());
  }
  return header + HeaderBlock(path, '0', bytes, modified_s);
}

// Returns whether whoever unpacks the archive gets this file below its directory.
bool IsPathBelow(std::string_view name) {
  const std::string whole = fmt::format("/{}/", name);
  return !name.empty() && name.find('\0') == std::string_view::npos &&
         name.size() <= limits::kExportNameBytesMax && whole.find("//") == std::string::npos &&
         whole.find("/../") == std::string::npos && whole.find("/./") == std::string::npos;
}

// Opens a file that disappears with its descriptor.
absl::StatusOr<UniqueFd> OpenTemporary() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  if (error) return FailedPrecondition("TMPDIR is no directory: {}", error.message());
  std::string path = (directory / "neurontrace-view-XXXXXX").string();
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return FailedPrecondition("cannot create a temporary file in {}: {}", directory.string(),
                              std::strerror(errno));
  }
  unlink(path.c_str());
  return fd;
}

}  // namespace

TarSpool::File* TarSpool::Find(uint32_t number) {
  if (number >= files_.size() || !files_[number].is_open) return nullptr;
  return &files_[number];
}

absl::Status TarSpool::Begin(std::string_view name) {
  if (!IsPathBelow(name)) return DataLoss("the aggregator sent a file whose name is no path");
  if (files_.size() >= limits::kExportFilesMax) {
    return ResourceExhausted("the export has more than {} files", limits::kExportFilesMax);
  }
  if (open_ >= limits::kWebSpoolFilesMax) {
    return ResourceExhausted("the export writes more than {} files at once",
                             limits::kWebSpoolFilesMax);
  }
  ASSIGN_OR_RETURN(UniqueFd fd, OpenTemporary());
  files_.push_back({.name = std::string(name), .fd = std::move(fd)});
  ++open_;
  return absl::OkStatus();
}

absl::Status TarSpool::Write(uint32_t number, std::string_view data) {
  File* const file = Find(number);
  if (file == nullptr) return DataLoss("the aggregator sent bytes of a file that is not open");
  if (data.size() > options_.bytes_max - std::min(bytes_, options_.bytes_max)) {
    return ResourceExhausted("the archive needs more than {} MiB of temporary files",
                             options_.bytes_max >> 20);
  }
  file->bytes += data.size();
  bytes_ += data.size();
  while (!data.empty()) {
    const ssize_t written = write(file->fd.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return FailedPrecondition("cannot write a temporary file: {}; TMPDIR names another directory",
                                std::strerror(errno));
    }
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status TarSpool::End(uint32_t number) {
  File* const file = Find(number);
  if (file == nullptr) return DataLoss("the aggregator ended a file that is not open");
  file->is_open = false;
  --open_;
  ready_.push_back(number);
  return absl::OkStatus();
}

// The end of an archive is two empty blocks, behind the file that may still be passed on.
absl::Status TarSpool::Finish() {
  if (open_ > 0) return DataLoss("the aggregator did not end {} of its files", open_);
  if (ready_.empty()) rest_.append(2 * kBlockBytes, '\0');
  is_finished_ = true;
  return absl::OkStatus();
}

absl::Status TarSpool::Read(std::string& piece) {
  piece = std::exchange(rest_, {});
  if (!piece.empty() || ready_.empty()) return absl::OkStatus();
  File& file = files_[ready_.front()];
  if (!has_header_) {
    has_header_ = true;
    piece = HeaderOf(fmt::format("{}/{}", options_.directory, file.name), file.bytes,
                     options_.modified_s);
    return absl::OkStatus();
  }
  piece.resize(std::min<uint64_t>(kPieceBytes, file.bytes - position_));
  size_t filled = 0;
  while (filled < piece.size()) {
    const ssize_t n = pread(file.fd.get(), piece.data() + filled, piece.size() - filled,
                            static_cast<off_t>(position_ + filled));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailedPrecondition("cannot read a temporary file: {}", std::strerror(errno));
    filled += static_cast<size_t>(n);
  }
  position_ += filled;
  if (position_ < file.bytes) return absl::OkStatus();
  // The file is through: its padding follows, and its space is free.
  piece += Padding(file.bytes);
  bytes_ -= file.bytes;
  file.fd.Close();
  ready_.pop_front();
  position_ = 0;
  has_header_ = false;
  if (ready_.empty() && is_finished_) rest_.append(2 * kBlockBytes, '\0');
  // An empty file has neither bytes nor padding.
  return piece.empty() ? Read(piece) : absl::OkStatus();
}

}  // namespace neurontrace
