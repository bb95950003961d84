// SPDX-License-Identifier: Apache-2.0
#include "cli/scratch_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

namespace fs = std::filesystem;

// The file whose lock shows that a run is alive.
constexpr char kLockName[] = "/lock";
// Entries of the base directory that are examined, as it may be /tmp of a busy machine.
constexpr int kEntriesMax = 10'000;  // looked at of a directory that is everybody's

// Returns the beginning of the names of this user's directories.
std::string Prefix() { return fmt::format("neurontrace-record-{}-", getuid()); }

// Returns whether the path is a directory of this user, and no link to one: it will be removed with
// its contents.
bool IsOwned(const std::string& path) {
  struct stat about;
  return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == getuid();
}

// Removes directories of earlier runs with a lock that nobody holds. Kept directories have no lock,
// and a new one has none until it is locked.
void RemoveLeftovers(const std::string& base) {
  std::error_code error;
  int entries = 0;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    if (++entries > kEntriesMax) return;
    const std::string path = it->path().string();
    if (!it->path().filename().string().starts_with(Prefix()) || !IsOwned(path)) continue;
    const UniqueFd lock(open((path + kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;  // the next run tries again
    fs::remove_all(path, ignored);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchDirectory>> ScratchDirectory::Make(const std::string& base) {
  // Remains are removed first: they may fill the disk that this run needs.
  RemoveLeftovers(base);
  std::string path = base + "/" + Prefix() + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return FailedPrecondition("cannot create a directory in {}: {}", base, strerror(errno));
  }
  // The lock file takes its name only when it is locked, so that no other run finds it unlocked and
  // removes the directory.
  const std::string unlocked = path + kLockName + ".new";
  UniqueFd lock(open(unlocked.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      std::rename(unlocked.c_str(), (path + kLockName).c_str()) != 0) {
    return FailedPrecondition("cannot lock {}: {}", path, strerror(errno));
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(path, std::move(lock)));
}

ScratchDirectory::~ScratchDirectory() {
  if (is_kept_) return;
  std::error_code ignored;  // nothing depends on it, and the next run tries again
  fs::remove_all(path_, ignored);
}

void ScratchDirectory::Keep() {
  is_kept_ = true;
  unlink((path_ + kLockName).c_str());
}

}  // namespace neurontrace::cli
