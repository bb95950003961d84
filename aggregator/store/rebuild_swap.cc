// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/rebuild_swap.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/store/store_errors.h"
#include "aggregator/store/store_files.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Markers in PATH/rebuilding. Both contain the name of the directory for the old files; only the
// content of the first is read.
constexpr char kComplete[] = "/COMPLETE";  // old files move out
constexpr char kMoving[] = "/MOVING";      // new files move in
constexpr std::string_view kAsidePrefix = "damaged-";
constexpr size_t kAsideDigitsMax = 10;  // of an int
constexpr size_t kMarkerBytesMax = 64;  // far more than a name; less than harmful
constexpr char kDoing[] = "replacing the store with the rebuilt one";

// Where the new database is built.
std::string ScratchOf(const std::string& path) { return path + "/rebuilding"; }

// Lists the store's files in a directory, except two. The lock stays with its holder, who has it
// open, and the note of found damage stays because the rebuilt store has to report it, too.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& path, rocksdb::Env& env) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env.GetChildren(path, &names), kDoing));
  std::vector<std::string> files;
  for (std::string& name : names) {
    if (name == "LOCK" || name == kFoundDamageFile || !IsStoreFile(name)) continue;
    bool is_directory = false;
    RETURN_IF_ERROR(FromRocksDb(env.IsDirectory(path + "/" + name, &is_directory), kDoing));
    if (!is_directory) files.push_back(std::move(name));
  }
  return files;
}

// Makes the renames in a directory durable.
absl::Status SyncDirectory(const std::string& path, rocksdb::Env& env) {
  std::unique_ptr<rocksdb::Directory> directory;
  RETURN_IF_ERROR(FromRocksDb(env.NewDirectory(path, &directory), kDoing));
  return FromRocksDb(directory->Fsync(), kDoing);
}

// Moves what is left of the files: repeating it after a crash completes the move. Both directories
// are synced, so that the next marker is never on the disk before the renames are.
absl::Status MoveFiles(const std::string& from, const std::string& to, rocksdb::Env& env) {
  RETURN_IF_ERROR(FromRocksDb(env.CreateDirIfMissing(to), kDoing));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesIn(from, env));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(FromRocksDb(env.RenameFile(from + "/" + name, to + "/" + name), kDoing));
  }
  RETURN_IF_ERROR(SyncDirectory(to, env));
  return SyncDirectory(from, env);
}

// Deletes the directory unless it holds files that are not the store's, which are never touched.
absl::Status RemoveScratch(const std::string& scratch, rocksdb::Env& env) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env.GetChildren(scratch, &names), kDoing));
  bool is_empty = true;
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    if (IsStoreFile(name) || name == &kComplete[1] || name == &kMoving[1]) {
      RETURN_IF_ERROR(FromRocksDb(env.DeleteFile(scratch + "/" + name), kDoing));
    } else {
      is_empty = false;
    }
  }
  return is_empty ? FromRocksDb(env.DeleteDir(scratch), kDoing) : absl::OkStatus();
}

// Returns whether the name is one that FinishRebuilding chooses: damaged-N.
bool IsMovedName(std::string_view name) {
  if (!name.starts_with(kAsidePrefix)) return false;
  name.remove_prefix(kAsidePrefix.size());
  return !name.empty() && name.size() <= kAsideDigitsMax &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads the directory's name from a marker. A damaged disk, or whoever made the files, may have put
// anything there, so a name that could lead outside the store is refused.
absl::StatusOr<std::string> ReadMarker(const std::string& file, rocksdb::Env& env) {
  uint64_t bytes = 0;
  RETURN_IF_ERROR(FromRocksDb(env.GetFileSize(file, &bytes), kDoing));
  std::string name;
  if (bytes <= kMarkerBytesMax) {
    RETURN_IF_ERROR(FromRocksDb(rocksdb::ReadFileToString(&env, file, &name), kDoing));
    if (name.ends_with('\n')) name.pop_back();  // if an operator wrote it
    if (IsMovedName(name)) return name;
  }
  return FailedPrecondition(
      "{}: its {} bytes '{}' are not a name damaged-N of a directory for the old files; write "
      "damaged-N into it, with an N that no directory of the store has, and start again",
      file, bytes, CleanText(name, kMarkerBytesMax));
}

// First all old files go out, then all new ones come in. With both kinds mixed in PATH a crash
// could leave a database of files that do not belong together.
absl::Status Swap(const std::string& path, rocksdb::Env& env) {
  const std::string scratch = ScratchOf(path);
  if (env.FileExists(scratch + kComplete).ok()) {
    ASSIGN_OR_RETURN(const std::string aside, ReadMarker(scratch + kComplete, env));
    RETURN_IF_ERROR(MoveFiles(path, path + "/" + aside, env));
    RETURN_IF_ERROR(FromRocksDb(env.RenameFile(scratch + kComplete, scratch + kMoving), kDoing));
    RETURN_IF_ERROR(SyncDirectory(scratch, env));
  }
  RETURN_IF_ERROR(MoveFiles(scratch, path, env));
  return RemoveScratch(scratch, env);
}

}  // namespace

// An earlier attempt is completed or removed first.
absl::StatusOr<std::string> BeginRebuilding(const std::string& path, rocksdb::Env& env) {
  RETURN_IF_ERROR(ResumeRebuilding(path, env));
  RETURN_IF_ERROR(FromRocksDb(env.CreateDirIfMissing(ScratchOf(path)), kDoing));
  return ScratchOf(path);
}

// The marker is durable before the first file moves. From then on every start continues the swap.
absl::StatusOr<std::string> FinishRebuilding(const std::string& path, rocksdb::Env& env) {
  std::string aside;
  for (int n = 1; aside.empty() || env.FileExists(path + "/" + aside).ok(); ++n) {
    aside = fmt::format("{}{}", kAsidePrefix, n);
  }
  RETURN_IF_ERROR(FromRocksDb(
      rocksdb::WriteStringToFile(&env, aside, ScratchOf(path) + kComplete, true), kDoing));
  RETURN_IF_ERROR(SyncDirectory(ScratchOf(path), env));
  RETURN_IF_ERROR(Swap(path, env));
  return aside;
}

absl::Status ResumeRebuilding(const std::string& path, rocksdb::Env& env) {
  const std::string scratch = ScratchOf(path);
  if (!env.FileExists(scratch).ok()) return absl::OkStatus();
  // Without a marker the new database is incomplete, and the old one is still whole in PATH.
  if (env.FileExists(scratch + kComplete).ok() || env.FileExists(scratch + kMoving).ok()) {
    return Swap(path, env);
  }
  return RemoveScratch(scratch, env);
}

}  // namespace neurontrace
