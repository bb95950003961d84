// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/json_writer.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns a time as RFC 3339 in UTC, with milliseconds.
std::string FormatAuditTime(uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     realtime_ns / 1'000'000 % 1'000);
}

// Returns one JSON object and a newline. Texts come from callers, so they are cleaned and cut.
std::string LineOf(const AuditEntry& entry, uint64_t realtime_ns) {
  JsonWriter out;
  const auto add = [&out](std::string_view key, std::string_view value) {
    if (!value.empty()) out.Member(key, CleanText(value, limits::kAuditTextBytesMax));
  };
  out.Open('{');
  add("time", FormatAuditTime(realtime_ns));
  add("action", entry.action);
  add("caller", entry.caller);
  add("role", entry.role);
  add("from", entry.from);
  add("capture", entry.capture);
  add("job", entry.job);
  add("detail", entry.detail);
  // A call that never reached its handler is refused, whatever its status.
  const bool refused = absl::IsPermissionDenied(entry.outcome) ||
                       absl::IsUnauthenticated(entry.outcome) || entry.action == kCallAction;
  add("outcome", entry.outcome.ok() ? "done" : (refused ? "refused" : "failed"));
  add("reason", std::string(entry.outcome.message()));
  return out.Close('}').Take() + "\n";
}

}  // namespace

// The file is opened at once, so that a path that cannot work stops the start.
absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         const Clock& clock, uint64_t bytes_max) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, clock, bytes_max));
  const MutexLock lock(log->mutex_);
  RETURN_IF_ERROR(log->OpenFile());
  return log;
}

// Keeps the open file unless another one could be opened.
absl::Status AuditLog::OpenFile() {
  // O_NOFOLLOW: never through a link that somebody else has put there. O_NONBLOCK: a FIFO must not
  // block.
  UniqueFd file(open(path_.c_str(),
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat about = {};
  if (!file.valid() || fstat(file.get(), &about) != 0) {
    return FailedPrecondition("the audit log {} cannot be written: {}", path_,
                              std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) {
    return FailedPrecondition("the audit log {} is not a regular file", path_);
  }
  file_ = std::move(file);
  // Applies also to a file that existed before, with any mode.
  RestrictToOwner(about.st_mode);
  bytes_ = static_cast<uint64_t>(about.st_size);
  return absl::OkStatus();
}

// Keeps the permissions of the group, which an administrator may have given to a log collector.
void AuditLog::RestrictToOwner(unsigned mode) {
  const bool is_closed =
      (mode & S_IRWXO) == 0 || fchmod(file_.get(), static_cast<mode_t>(mode & 0770)) == 0;
  if (!is_closed && !std::exchange(is_open_to_others_, true)) {
    SPDLOG_WARN("other users may access the audit log {}, and its mode cannot be changed: {}",
                path_, std::strerror(errno));
  }
  if (is_closed) is_open_to_others_ = false;
}

// A line written into a removed or renamed file would be missed.
absl::Status AuditLog::FollowRotation() {
  struct stat here = {};
  struct stat about = {};
  // Uses lstat, as OpenFile does not follow links either.
  const bool is_same = file_.valid() && fstat(file_.get(), &here) == 0 &&
                       lstat(path_.c_str(), &about) == 0 && about.st_dev == here.st_dev &&
                       about.st_ino == here.st_ino;
  if (!is_same) return OpenFile();
  RestrictToOwner(here.st_mode);                  // somebody may have opened it meanwhile
  bytes_ = static_cast<uint64_t>(about.st_size);  // truncated, with logrotate's copytruncate
  return absl::OkStatus();
}

// Returns the error of the rotation after a line that was written nevertheless: it may be in a
// renamed file.
absl::Status AuditLog::Append(const std::string& line) {
  absl::Status status = FollowRotation();
  if (!file_.valid()) return status;
  // The line that would exceed the limit goes into the new file. An empty file takes any line.
  if (status.ok() && bytes_ + line.size() > bytes_max_ && bytes_ > 0) {
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) {
      return FailedPrecondition("the audit log {} cannot be renamed: {}", path_,
                                std::strerror(errno));
    }
    status = OpenFile();
  }
  // One write per line: with O_APPEND lines of several writers do not mix.
  const ssize_t wrote = write(file_.get(), line.data(), line.size());
  if (wrote == static_cast<ssize_t>(line.size())) return status;
  return FailedPrecondition("the audit log {} cannot be written: {}", path_,
                            wrote < 0 ? std::strerror(errno) : "the disk is full");
}

// Logs only the first failure, as a full disk would otherwise fill the log, too.
void AuditLog::Report(const absl::Status& status) {
  if (!status.ok() && !was_bad_) SPDLOG_ERROR("{}", std::string(status.message()));
  was_bad_ = !status.ok();
}

// The line is made before the lock is taken.
void AuditLog::Write(const AuditEntry& entry) {
  const std::string line = LineOf(entry, clock_.RealtimeNs());
  const MutexLock lock(mutex_);
  const absl::Status status = Append(line);
  if (!status.ok()) ++failed_;
  Report(status);
}

// Called after SIGHUP, when logrotate has moved the file.
void AuditLog::Reopen() {
  const MutexLock lock(mutex_);
  Report(OpenFile());
}

uint64_t AuditLog::failed() const {
  const MutexLock lock(mutex_);
  return failed_;
}

}  // namespace neurontrace
