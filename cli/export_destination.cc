// SPDX-License-Identifier: Apache-2.0
#include "cli/export_destination.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "cli/output_place.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/export_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace::cli {
namespace {

// Open files at the same time, below the usual limit of 1,024 descriptors of a process.
constexpr size_t kOpenFilesMax = 512;
// Bytes that are read at once to hash an existing file.
constexpr size_t kReadBytes = 1u << 20;

// Returns the error for the current errno.
absl::Status CannotWrite(const std::string& path) {
  return FailedPrecondition("cannot write {}: {}", path, std::strerror(errno));
}

// Closes a file, but not standard output, which belongs to the process. Errors are lost: whole
// files are closed by CloseWhole.
struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// Writes all bytes. The buffer may hide an error until CloseWhole.
absl::Status Put(std::FILE* file, const std::string& data, const std::string& path) {
  if (std::fwrite(data.data(), 1, data.size(), file) == data.size()) return absl::OkStatus();
  return CannotWrite(path);
}

// Closes a file and reports errors that only appear then, such as a full disk.
absl::Status CloseWhole(File file, const std::string& path) {
  if (std::fflush(file.get()) != 0) return CannotWrite(path);
  std::FILE* const released = file.release();
  if (released != stdout && std::fclose(released) != 0) return CannotWrite(path);
  return absl::OkStatus();
}

// Opens a new file, or the existing one after its held bytes. Fails with DATA_LOSS if it has
// another size. O_NOFOLLOW refuses a link that somebody has put in the place of a temporary file.
absl::StatusOr<File> OpenFrom(const std::string& path, uint64_t held_bytes) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(open(path.c_str(), flags | (held_bytes == 0 ? O_TRUNC : O_APPEND), 0666));
  if (!fd.valid()) return CannotWrite(path);
  struct stat about = {};
  if (fstat(fd.get(), &about) != 0) return CannotWrite(path);
  if (static_cast<uint64_t>(about.st_size) != held_bytes) {
    return DataLoss("the aggregator resumes {} after {} bytes, but {} bytes are present", path,
                    held_bytes, about.st_size);
  }
  File file(fdopen(fd.get(), held_bytes == 0 ? "wb" : "ab"));
  if (file == nullptr) return CannotWrite(path);
  fd.release();
  return file;
}

// Returns size and SHA-256 of an existing file, under the aggregator's name of it. The aggregator
// compares them with the beginning of its own export before it sends the rest.
absl::StatusOr<v1::HeldFile> ReadHeld(const std::string& path, const std::string& name) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return FailedPrecondition("cannot read {}: {}", path, std::strerror(errno));
  v1::HeldFile held;
  held.set_name(name);
  Sha256 hash;
  std::vector<char> piece(kReadBytes);
  while (true) {
    const ssize_t n = read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailedPrecondition("cannot read {}: {}", path, std::strerror(errno));
    if (n == 0) break;
    hash.Update({piece.data(), static_cast<size_t>(n)});
    held.set_bytes(held.bytes() + static_cast<uint64_t>(n));
  }
  held.set_sha256(hash.Finish());
  return held;
}

// Standard output, a pipe or a device: bytes are visible as soon as they are written, and cannot be
// taken back.
class StreamDestination : public ExportDestination {
 public:
  StreamDestination(std::string name, File file) : name_(std::move(name)), file_(std::move(file)) {}

  // The only file is announced once and has no bytes yet.
  absl::Status Begin(const std::string& name, uint64_t held_bytes) override {
    if (number_ != 0 || held_bytes != 0) {
      return DataLoss("the aggregator sent {} where a single file was expected", name);
    }
    ++number_;
    return absl::OkStatus();
  }
  absl::Status Write(uint32_t number, const std::string& data) override {
    RETURN_IF_ERROR(CheckNumber(number));
    return Put(file_.get(), data, name_);
  }
  absl::Status End(uint32_t number) override {
    RETURN_IF_ERROR(CheckNumber(number));
    has_ended_ = true;
    return absl::OkStatus();
  }
  // Nothing can be continued: the bytes have been consumed by somebody else.
  absl::StatusOr<std::vector<v1::HeldFile>> Resume() override {
    return std::vector<v1::HeldFile>();
  }
  absl::Status Restart() override {
    return FailedPrecondition("{} cannot be rewritten from its start; write to a file with -o FILE",
                              name_);
  }
  absl::Status Keep() override {
    if (!has_ended_) return DataLoss("the aggregator did not finish its file");
    return CloseWhole(std::move(file_), name_);
  }
  ExportPart* part() override { return nullptr; }

 private:
  // Returns DATA_LOSS unless the file is the announced one and still open.
  absl::Status CheckNumber(uint32_t number) const {
    if (number_ == 1 && number == 0 && !has_ended_) return absl::OkStatus();
    return DataLoss("the aggregator sent bytes without a file");
  }

  const std::string name_;
  File file_;
  // Number of files that have begun, 0 or 1.
  uint32_t number_ = 0;
  bool has_ended_ = false;
};

// A single file, which is itself the temporary place.
class FileDestination : public ExportDestination {
 public:
  FileDestination(std::string path, std::unique_ptr<ExportPart> part)
      : path_(std::move(path)), part_(std::move(part)) {}

  absl::Status Begin(const std::string& name, uint64_t held_bytes) override {
    if (has_begun_) {
      return DataLoss("the aggregator sent a second file, {}, for {}", name, path_);
    }
    has_begun_ = true;
    ASSIGN_OR_RETURN(file_, OpenFrom(part_->path(), held_bytes));
    part_->RecordFileName(name);
    return absl::OkStatus();
  }
  absl::Status Write(uint32_t number, const std::string& data) override {
    RETURN_IF_ERROR(CheckNumber(number));
    return Put(file_.get(), data, path_);
  }
  absl::Status End(uint32_t number) override {
    RETURN_IF_ERROR(CheckNumber(number));
    return CloseWhole(std::move(file_), path_);
  }
  // The place remembers the aggregator's name, without which the file cannot be compared.
  absl::StatusOr<std::vector<v1::HeldFile>> Resume() override {
    Forget();
    if (part_->file_name().empty()) return std::vector<v1::HeldFile>();
    ASSIGN_OR_RETURN(v1::HeldFile held, ReadHeld(part_->path(), part_->file_name()));
    if (held.bytes() == 0) return std::vector<v1::HeldFile>();
    return std::vector<v1::HeldFile>{std::move(held)};
  }
  absl::Status Restart() override {
    Forget();
    return part_->Clear();
  }
  absl::Status Keep() override {
    if (!has_begun_ || file_ != nullptr) return DataLoss("the aggregator did not finish {}", path_);
    return part_->TakeName();
  }
  ExportPart* part() override { return part_.get(); }

 private:
  // Returns DATA_LOSS unless the file is open.
  absl::Status CheckNumber(uint32_t number) const {
    if (file_ != nullptr && number == 0) return absl::OkStatus();
    return DataLoss("the aggregator sent bytes without a file for {}", path_);
  }
  // Closes the file without keeping its state.
  void Forget() {
    // Bytes that do not reach the disk are received again, so errors do not matter.
    file_.reset();
    has_begun_ = false;
  }

  const std::string path_;
  const std::unique_ptr<ExportPart> part_;
  File file_;  // from its begin to its end
  bool has_begun_ = false;
};

// Returns whether a name stays below the directory. It comes from an aggregator, which is not
// trusted to choose a path on this machine.
bool IsBelow(const std::filesystem::path& name) {
  if (name.empty() || name.is_absolute()) return false;
  for (const auto& part : name) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// A new directory of files, whose names the aggregator chooses. The limits bound what a faulty
// aggregator can create.
class DirectoryDestination : public ExportDestination {
 public:
  DirectoryDestination(std::string path, std::unique_ptr<ExportPart> part)
      : path_(std::move(path)), part_(std::move(part)) {}

  absl::Status Begin(const std::string& name, uint64_t held_bytes) override {
    if (!IsBelow(name)) return DataLoss("the aggregator sent a file named '{}'", name);
    if (begun_.size() >= limits::kExportFilesMax || open_.size() >= kOpenFilesMax) {
      return ResourceExhausted("the aggregator sent more than {} files, or {} at once",
                               limits::kExportFilesMax, kOpenFilesMax);
    }
    const auto number = static_cast<uint32_t>(begun_.size());
    if (!begun_.insert(name).second) return DataLoss("the aggregator sent {} twice", name);
    const std::filesystem::path path = std::filesystem::path(part_->path()) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return FailedPrecondition("cannot create {}: {}", path.parent_path().string(),
                                error.message());
    }
    ASSIGN_OR_RETURN(File file, OpenFrom(path.string(), held_bytes));
    open_.emplace(number, OpenFile{path.string(), std::move(file)});
    return absl::OkStatus();
  }
  absl::Status Write(uint32_t number, const std::string& data) override {
    const auto at = open_.find(number);
    if (at == open_.end())
      return DataLoss("the aggregator sent bytes without a file for {}", path_);
    return Put(at->second.file.get(), data, at->second.path);
  }
  absl::Status End(uint32_t number) override {
    const auto at = open_.find(number);
    if (at == open_.end())
      return DataLoss("the aggregator finished a file that it did not start, for {}", path_);
    RETURN_IF_ERROR(CloseWhole(std::move(at->second.file), at->second.path));
    open_.erase(at);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<v1::HeldFile>> Resume() override;
  absl::Status Restart() override {
    Forget();
    held_.clear();
    return part_->Clear();
  }
  absl::Status Keep() override {
    // Every file must be closed, and files of the interrupted export must have been sent again:
    // otherwise the directory would mix two exports.
    if (!open_.empty()) {
      return DataLoss("the aggregator did not finish {}", open_.begin()->second.path);
    }
    for (const std::string& name : held_) {
      if (!begun_.contains(name)) return DataLoss("the aggregator did not send {} again", name);
    }
    return part_->TakeName();
  }
  ExportPart* part() override { return part_.get(); }

 private:
  // A file that has begun and not ended.
  struct OpenFile {
    std::string path;
    File file;
  };
  // Closes all files without keeping their state; see FileDestination::Forget.
  void Forget() {
    open_.clear();
    begun_.clear();
  }

  const std::string path_;
  const std::unique_ptr<ExportPart> part_;
  std::map<uint32_t, OpenFile> open_;  // by number
  std::set<std::string> begun_;        // names
  std::set<std::string> held_;         // names of what was there before
};

// Hashes every file below the directory, in any order. Empty files are not held, but must be sent
// again.
absl::StatusOr<std::vector<v1::HeldFile>> DirectoryDestination::Resume() {
  Forget();
  held_.clear();
  std::vector<v1::HeldFile> held;
  std::error_code error;
  auto entry = std::filesystem::recursive_directory_iterator(part_->path(), error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) continue;
    const std::string name = entry->path().lexically_relative(part_->path()).string();
    held_.insert(name);
    ASSIGN_OR_RETURN(v1::HeldFile file, ReadHeld(entry->path().string(), name));
    if (file.bytes() != 0) held.push_back(std::move(file));
  }
  if (error) return FailedPrecondition("cannot read {}: {}", part_->path(), error.message());
  if (held.size() <= limits::kExportHeldFilesMax) return held;
  // A request may name only this many files, so more cannot be resumed.
  RETURN_IF_ERROR(Restart());
  return std::vector<v1::HeldFile>();
}

// Opens a directory. A trailing slash is removed because the temporary name is appended to the
// path.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDirectory(ExportPart::Spec spec) {
  RETURN_IF_ERROR(CheckOutputPlace(spec.path, true));
  ASSIGN_OR_RETURN(OutputPlace place, FindOutputPlace(spec.path));
  spec.path = std::move(place.path);
  while (spec.path.size() > 1 && spec.path.ends_with('/')) spec.path.pop_back();
  ASSIGN_OR_RETURN(std::unique_ptr<ExportPart> part, ExportPart::Open(spec));
  return std::make_unique<DirectoryDestination>(spec.path, std::move(part));
}

// Opens a place that is written directly. `typed` names it in messages.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenStream(const std::string& typed,
                                                              const OutputPlace& place) {
  if (place.is_standard_output()) {
    return std::make_unique<StreamDestination>("standard output", File(stdout));
  }
  // A descriptor belongs to the caller: it stays open, and writing continues at its position.
  // Opening a pipe waits for a reader. An existing file that cannot be replaced is truncated.
  UniqueFd fd(place.kind == OutputPlace::Kind::kDescriptor
                  ? fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0)
                  : open(place.path.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return CannotWrite(typed);
  File file(fdopen(fd.get(), "wb"));
  if (file == nullptr) return CannotWrite(typed);
  fd.release();
  return std::make_unique<StreamDestination>(typed, std::move(file));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDestination(ExportPart::Spec spec) {
  if (spec.is_directory) return OpenDirectory(std::move(spec));
  const std::string typed = spec.path;
  RETURN_IF_ERROR(CheckOutputPlace(typed, false));
  ASSIGN_OR_RETURN(OutputPlace place, FindOutputPlace(typed));
  if (place.kind != OutputPlace::Kind::kNew) return OpenStream(typed, place);
  spec.path = std::move(place.path);
  ASSIGN_OR_RETURN(std::unique_ptr<ExportPart> part, ExportPart::Open(spec));
  // An attempt to open the file shows whether it can be written before the aggregator is asked.
  // Held bytes were opened by their own export.
  if (part->file_name().empty()) RETURN_IF_ERROR(OpenFrom(part->path(), 0).status());
  return std::make_unique<FileDestination>(typed, std::move(part));
}

}  // namespace neurontrace::cli
