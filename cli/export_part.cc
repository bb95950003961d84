// SPDX-License-Identifier: Apache-2.0
#include "cli/export_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

constexpr std::string_view kPartEnding = ".part";
constexpr std::string_view kNoteEnding = ".request";
// Notes are a few lines; the rest of a longer file is ignored.
constexpr size_t kNoteBytesMax = 8'192;
// Attempts to take a note that other processes remove meanwhile.
constexpr int kAttemptsMax = 8;

// The first line of a note, which marks a file as a note of this program, and the keys of the
// others.
constexpr std::string_view kFirstLine = "neurontrace export, received in part, version 1\n";
constexpr std::string_view kRequestKey = "request ";
constexpr std::string_view kFileKey = "file ";

// Returns the rest of the line that starts with `key`; "" if there is none.
std::string LineOf(std::string_view note, std::string_view key) {
  const size_t at = note.find("\n" + std::string(key));
  if (at == std::string_view::npos) return {};
  const size_t begin = at + 1 + key.size();
  const size_t end = note.find('\n', begin);
  // A truncated line, as of a full disk, is ignored.
  return end == std::string_view::npos ? "" : std::string(note.substr(begin, end - begin));
}

// Returns whether both are the same file, whatever its names.
bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Syncs a file or directory to the disk as far as possible. A directory that may not be read and a
// volume that cannot sync are accepted.
absl::Status Sync(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool is_synced = fd.valid() ? fsync(fd.get()) == 0 || errno == EINVAL : errno == EACCES;
  if (is_synced) return absl::OkStatus();
  return FailedPrecondition("cannot sync {} to disk: {}", path, std::strerror(errno));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExportPart>> ExportPart::Open(const Spec& spec) {
  std::unique_ptr<ExportPart> part(new ExportPart(spec));
  part->path_ = spec.path + std::string(kPartEnding);
  // Without the note the name contains the pid, so that no other process uses it.
  if (spec.request.empty() || !part->AdoptResumeNote()) {
    part->note_.Close();
    part->path_ = fmt::format("{}.{}{}", spec.path, getpid(), kPartEnding);
  }
  // Remains of another request are removed before anything is written.
  if (!part->is_of_same_request_ || spec.is_restart) RETURN_IF_ERROR(part->Clear());
  return part;
}

ExportPart::~ExportPart() {
  if (is_left_ || is_named_) return;
  RemoveTemporary(path_);
  // The note is removed while its lock is held, so that no other process's note is removed.
  if (note_.valid()) unlink((path_ + std::string(kNoteEnding)).c_str());
}

// A note that exists without its owner is free; the lock decides.
bool ExportPart::AdoptResumeNote() {
  const std::string name = path_ + std::string(kNoteEnding);
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    note_ = UniqueFd(open(name.c_str(), kFlags | O_EXCL, 0600));
    const bool is_new = note_.valid();
    if (!is_new) note_ = UniqueFd(open(name.c_str(), kFlags & ~O_CREAT));
    // Another process has removed the note meanwhile, or the directory does not exist.
    if (!note_.valid() && errno == ENOENT) continue;
    if (!note_.valid()) return false;
    if (flock(note_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (is_new) unlink(name.c_str());
      return false;
    }
    struct stat locked = {};
    struct stat named = {};
    if (fstat(note_.get(), &locked) != 0) return false;
    // The former owner has removed the note after the open, so that this lock is on a file without
    // a name and excludes nobody.
    if (lstat(name.c_str(), &named) != 0 || !IsSame(locked, named)) continue;
    char text[kNoteBytesMax];
    const ssize_t n = pread(note_.get(), text, sizeof(text), 0);
    const std::string_view note(text, n > 0 ? static_cast<size_t>(n) : 0);
    // An empty file is a note that was just created or was truncated by a full disk.
    const bool is_note = note.empty() || note.starts_with(kFirstLine);
    struct stat there = {};
    // A part without a note was not made by this version, and must not be removed.
    const bool is_free = lstat(path_.c_str(), &there) != 0;
    if (!S_ISREG(locked.st_mode) || locked.st_uid != geteuid() || !is_note ||
        (is_new && !is_free)) {
      if (is_new) unlink(name.c_str());
      return false;
    }
    ReadResumeNote(std::string(note));
    WriteResumeNote();
    return true;
  }
  return false;
}

void ExportPart::ReadResumeNote(const std::string& note) {
  is_of_same_request_ = LineOf(note, kRequestKey) == spec_.request && IsOwned();
  if (is_of_same_request_) file_name_ = LineOf(note, kFileKey);
}

// Returns whether existing files may be continued: they are no link and belong to this user.
bool ExportPart::IsOwned() const {
  struct stat about = {};
  if (lstat(path_.c_str(), &about) != 0 || about.st_uid != geteuid()) return false;
  return spec_.is_directory ? S_ISDIR(about.st_mode) : S_ISREG(about.st_mode);
}

// Without a note, or with a truncated one, the next export restarts, so errors are ignored.
void ExportPart::WriteResumeNote() {
  std::string note =
      fmt::format("{}capture {}\n{}{}\n", kFirstLine, spec_.capture_id, kRequestKey, spec_.request);
  if (!file_name_.empty()) note += fmt::format("{}{}\n", kFileKey, file_name_);
  const bool is_cut = ftruncate(note_.get(), 0) != 0;
  [[maybe_unused]] const ssize_t n = is_cut ? 0 : pwrite(note_.get(), note.data(), note.size(), 0);
}

void ExportPart::RecordFileName(const std::string& name) {
  if (name == file_name_) return;
  file_name_ = name;
  if (note_.valid()) WriteResumeNote();
}

// The note loses the file's name, because the file does not exist any more.
absl::Status ExportPart::Clear() {
  RemoveTemporary(path_);
  file_name_.clear();
  if (note_.valid()) WriteResumeNote();
  std::error_code error;
  if (spec_.is_directory && !std::filesystem::create_directory(path_, error)) {
    return FailedPrecondition("cannot create {}: {}", path_,
                              error ? error.message() : "it is there");
  }
  return absl::OkStatus();
}

absl::Status ExportPart::TakeName() {
  // Files are synced before the rename, so that a file with its real name is whole even if the
  // machine fails right after it.
  if (spec_.is_directory) {
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(path_, error), end; at != end && !error;
         at.increment(error)) {
      RETURN_IF_ERROR(Sync(at->path()));
    }
    if (error) return FailedPrecondition("cannot read {}: {}", path_, error.message());
  }
  RETURN_IF_ERROR(Sync(path_));
  // The new file receives the owner and permissions of the one that it replaces, so that nobody
  // gains or loses access. Failures are ignored: only root may change owners.
  struct stat before = {};
  if (!spec_.is_directory && lstat(spec_.path.c_str(), &before) == 0 && S_ISREG(before.st_mode)) {
    [[maybe_unused]] const int owned = chown(path_.c_str(), before.st_uid, before.st_gid);
    [[maybe_unused]] const int allowed = chmod(path_.c_str(), before.st_mode & 0777);
  }
  // rename(2) replaces a directory only if it is empty.
  if (std::rename(path_.c_str(), spec_.path.c_str()) != 0) {
    return FailedPrecondition("cannot write {}: {}", spec_.path, std::strerror(errno));
  }
  is_named_ = true;
  if (note_.valid()) unlink((path_ + std::string(kNoteEnding)).c_str());
  // The rename itself is in the directory, so it is synced as well.
  const std::string parent = std::filesystem::path(spec_.path).parent_path();
  return Sync(parent.empty() ? "." : parent);
}

void RemoveTemporary(const std::string& temporary) {
  // Errors are ignored: a remainder is recognisable by its name.
  std::error_code ignored;
  if (!temporary.empty()) std::filesystem::remove_all(temporary, ignored);
}

}  // namespace neurontrace::cli
