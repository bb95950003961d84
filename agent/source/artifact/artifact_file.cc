// SPDX-License-Identifier: Apache-2.0
#include "agent/source/artifact/artifact_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

// Returns the text of the last system call's error. Must be called before anything else can fail.
std::string ErrnoMessage() { return std::generic_category().message(errno); }

// Opens a folder without following a link; not valid if it is none.
UniqueFd OpenFolderAt(int folder, const std::string& name) {
  return UniqueFd(openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Returns the parts of a stat(2) result that tell versions of a file apart.
ArtifactFileState StateOf(const struct stat& status) {
  return {.bytes = static_cast<uint64_t>(status.st_size),
          .modified_ns = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                         static_cast<uint64_t>(status.st_mtim.tv_nsec),
          .inode = status.st_ino};
}

// Searches the folders of one inspect directory.
class Search {
 public:
  Search(const std::string& root, const std::string& instance_id)
      : root_(root), instance_id_(instance_id) {}

  std::vector<FoundArtifact> Run() {
    const UniqueFd root(open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ForEachIn(root, [&](const std::string& name) {
      if (!IsInspectDirectory(name)) return;
      // A shared volume has the directories of all instances; each agent hands over its own.
      if (name != "neffs" && !name.starts_with(instance_id_ + "_pid_")) return;
      ListFolder(OpenFolderAt(root.get(), name), name, "");
    });
    return std::move(found_);
  }
  bool truncated() const { return truncated_; }

 private:
  // Adds the artifacts in a folder, and in the sessions below it, which have no folders of their
  // own.
  void ListFolder(const UniqueFd& folder, const std::string& directory,
                  const std::string& session) {
    ForEachIn(folder, [&](const std::string& name) {
      auto place = MakeArtifactPlace(directory, session, name);
      if (place.ok()) {
        // Anybody's file of this name would pass for what the agent itself read.
        if (IsOfStacks(place->kind)) return;
        struct stat status {};
        // Links are not followed and count as absent, as everywhere below the root.
        const bool is_file =
            fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode);
        if (is_file) found_.push_back({root_, *std::move(place), StateOf(status)});
      } else if (session.empty() && directory != "neffs" && IsInspectSession(name)) {
        ListFolder(OpenFolderAt(folder.get(), name), directory, name);
      }
    });
  }

  // Calls `visit` with each name until the limit is reached. A folder that cannot be read is empty:
  // it may have been removed meanwhile.
  void ForEachIn(const UniqueFd& folder, const std::function<void(const std::string&)>& visit) {
    if (!folder.valid()) return;
    // fdopendir(3) takes the descriptor over, and the caller still needs its own for openat(2).
    const int copy = fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : fdopendir(copy),
                                                      closedir);
    if (listing == nullptr) return;
    while (const dirent* const entry = readdir(listing.get())) {
      // One count for the whole search, so that many small folders cost no more than a large one.
      if (++entries_ > limits::kInspectEntriesMax) {
        truncated_ = true;
        return;
      }
      visit(entry->d_name);
    }
  }

  const std::string& root_;
  const std::string& instance_id_;
  std::vector<FoundArtifact> found_;
  size_t entries_ = 0;
  bool truncated_ = false;
};

}  // namespace

std::vector<FoundArtifact> FindArtifacts(const std::string& root, const std::string& instance_id,
                                         bool& truncated) {
  Search search(root, instance_id);
  std::vector<FoundArtifact> found = search.Run();
  truncated = truncated || search.truncated();
  std::sort(found.begin(), found.end(), [](const FoundArtifact& a, const FoundArtifact& b) {
    return a.place.path() < b.place.path();
  });
  return found;
}

absl::StatusOr<ArtifactFile> ArtifactFile::Open(const std::string& root,
                                                const ArtifactPlace& place) {
  UniqueFd folder(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& name : {place.directory, place.session}) {
    if (!name.empty() && folder.valid()) folder = OpenFolderAt(folder.get(), name);
  }
  // O_NONBLOCK: a file that was replaced by a pipe must not block here; fstat(2) then refuses it.
  UniqueFd file(!folder.valid() ? -1
                                : openat(folder.get(), place.name.c_str(),
                                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return NotFound("cannot open {}/{}: {}", root, place.path(), ErrnoMessage());
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return FailedPrecondition("{}/{} is not a regular file", root, place.path());
  }
  return ArtifactFile(std::move(file));
}

absl::StatusOr<ArtifactFileState> ArtifactFile::State() const {
  struct stat status {};
  if (fstat(file_.get(), &status) != 0)
    return Unavailable("cannot examine the artifact: {}", ErrnoMessage());
  return StateOf(status);
}

absl::StatusOr<std::string> ArtifactFile::Read(uint64_t offset, size_t bytes_max) const {
  std::string bytes(bytes_max, '\0');
  size_t size = 0;
  while (size < bytes_max) {
    const ssize_t got = pread(file_.get(), bytes.data() + size, bytes_max - size,
                              static_cast<off_t>(offset + size));
    // pread(2) may be interrupted on network file systems.
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable("cannot read the artifact: {}", ErrnoMessage());
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace neurontrace
