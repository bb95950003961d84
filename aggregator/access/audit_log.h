// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// The action of a call that was refused before it started.
inline constexpr std::string_view kCallAction = "call";

// One line of the audit log. Texts are cleaned and cut to limits::kAuditTextBytesMax. A text that
// is empty is not written. `caller` and `role` are empty for a caller that is unknown.
struct AuditEntry {
  std::string_view action;  // "capture.start", "capture.stop", "capture.delete", "export", …
  std::string caller;
  std::string role;
  std::string from;  // the peer's address as gRPC names it; empty: unknown
  std::string capture;
  std::string job;
  std::string detail;  // what was requested, or why it was refused
  absl::Status outcome;
};

// Records who did what, as one JSON object per line, appended immediately. At
// limits::kAuditLogBytesMax the file is renamed to NAME.1, which replaces an earlier one. If
// another program renames or removes the file (logrotate), the next line goes into a new one.
//
// Only the owner can read the file, and a group that somebody has given permission; permissions of
// others are removed. Any thread; a call waits for the kernel, not for the disk. The keys are
// listed in docs/operator/security.md.
class AuditLog {
 public:
  // Creates the file with mode 0600 if it does not exist. Fails with FAILED_PRECONDITION if it
  // cannot be written. `clock` must outlive the log. `bytes_max` is smaller in tests.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(
      const std::string& path, const Clock& clock, uint64_t bytes_max = limits::kAuditLogBytesMax);

  // Writes a line. If that fails, logs and counts it and lets the action continue: a full disk is
  // no reason to leave a job untraced.
  void Write(const AuditEntry& entry);

  // Opens the file again, for example after SIGHUP. Logs a failure and continues with the open
  // file.
  void Reopen();

  // Returns the number of lines that could not be written, or that went into a renamed file because
  // no new one could be created.
  uint64_t failed() const;

 private:
  AuditLog(std::string path, const Clock& clock, uint64_t bytes_max)
      : path_(std::move(path)), clock_(clock), bytes_max_(bytes_max) {}
  // Opens the file, or creates it; sets bytes_ to its size.
  absl::Status OpenFile() NT_REQUIRES(mutex_);
  // Removes the permissions of others from the open file; logs once if that is impossible.
  void RestrictToOwner(unsigned mode) NT_REQUIRES(mutex_);
  // Opens the path again if another program has renamed, removed or replaced the file.
  absl::Status FollowRotation() NT_REQUIRES(mutex_);
  // Appends a line, after following a rotation and renaming a full file.
  absl::Status Append(const std::string& line) NT_REQUIRES(mutex_);
  // Logs the first of consecutive failures.
  void Report(const absl::Status& status) NT_REQUIRES(mutex_);

  const std::string path_;
  const Clock& clock_;
  const uint64_t bytes_max_;
  // Held while a line is written.
  mutable Mutex mutex_;
  UniqueFd file_ NT_GUARDED_BY(mutex_);
  // The size of the open file.
  uint64_t bytes_ NT_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ NT_GUARDED_BY(mutex_) = 0;
  // Whether the last write or reopening failed.
  bool was_bad_ NT_GUARDED_BY(mutex_) = false;
  bool is_open_to_others_ NT_GUARDED_BY(mutex_) = false;  // and cannot be changed; logged once
};

}  // namespace neurontrace
