// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_errors.h"

#include <array>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Texts of errno values as RocksDB quotes them, with what to do about each. Texts are compared
// because a rocksdb::Status does not contain the errno.
struct SystemError {
  std::string_view words;
  absl::StatusCode code;
  std::string_view advice;
};
constexpr std::string_view kDiskFull =
    "the disk is full (df), or has no inodes left (df -i); delete captures or other files, or "
    "enlarge it";
constexpr std::array kSystemErrors = {
    SystemError{"lock hold by current process", absl::StatusCode::kFailedPrecondition,
                "this process has the store open already"},
    SystemError{"No space left on device", absl::StatusCode::kResourceExhausted, kDiskFull},
    SystemError{"Disk quota exceeded", absl::StatusCode::kResourceExhausted,
                "the quota is exhausted; delete captures or other files, or raise it"},
    SystemError{"File too large", absl::StatusCode::kResourceExhausted,
                "a file has reached the size limit; raise it (ulimit -f)"},
    SystemError{"Permission denied", absl::StatusCode::kFailedPrecondition,
                "no permission; run it as the owner of the files, or change their owner"},
    SystemError{"Operation not permitted", absl::StatusCode::kFailedPrecondition,
                "not permitted; check the attributes (lsattr) and the owner of the file"},
    SystemError{"Read-only file system", absl::StatusCode::kFailedPrecondition,
                "the file system is mounted read-only, as the kernel does when the disk fails; "
                "check the kernel's log (dmesg)"},
    SystemError{"Too many open files", absl::StatusCode::kFailedPrecondition,
                "too many open files; raise the limit (ulimit -n, LimitNOFILE=) to 4096"},
    SystemError{"Not a directory", absl::StatusCode::kFailedPrecondition,
                "it is not a directory; choose one"},
    SystemError{"No such file or directory", absl::StatusCode::kDataLoss,
                "the store is damaged: one of its files is missing"},
    SystemError{"Input/output error", absl::StatusCode::kUnavailable,
                "the disk reports an error; check the kernel's log (dmesg)"},
    // Last, as it also matches some of the above; the system's own reason, "Resource temporarily
    // unavailable", is misleading.
    SystemError{"While lock file", absl::StatusCode::kFailedPrecondition,
                "another process has the store open; stop it, or choose another directory"},
};

// Messages of RocksDB about files of a newer version, which it classifies as corruption.
bool IsOfNewerRocksDb(std::string_view words) {
  return words.find("newer version of RocksDB") != std::string_view::npos ||
         words.find("Unknown Footer version") != std::string_view::npos;
}

}  // namespace

// The first text that occurs decides. A text is more precise than RocksDB's own classes, which
// count most of these as I/O errors.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string words = status.ToString();
  // Without advice: many callers expect it.
  if (status.IsNotFound()) return NotFound("{}: not found", doing);
  for (const SystemError& error : kSystemErrors) {
    if (words.find(error.words) == std::string::npos) continue;
    return MakeStatus(error.code, "{}: {}: {}", doing, error.advice, words);
  }
  if (status.IsNoSpace()) {
    return ResourceExhausted("{}: {}: {}", doing, kDiskFull, words);
  }
  if (IsOfNewerRocksDb(words)) {
    return FailedPrecondition("{}: written by a newer neurontrace; install that version: {}", doing,
                              words);
  }
  if (status.IsCorruption()) return DataLoss("{}: the store is damaged: {}", doing, words);
  if (status.IsBusy() || status.IsTryAgain()) return Unavailable("{}: {}", doing, words);
  if (status.IsIOError()) return Unavailable("{}: {}", doing, words);
  return Internal("{}: {}", doing, words);
}

}  // namespace neurontrace
