// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "aggregator/store/store_errors.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kNumberDigitsMax = 20;  // of 2^64 - 1

// Returns whether the text is a number as in the names of RocksDB's files.
bool IsFileNumber(std::string_view text) {
  return !text.empty() && text.size() <= kNumberDigitsMax &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether `name` is `prefix`, a number and `suffix`.
bool IsNumbered(std::string_view prefix, std::string_view name, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
  if (name.size() < prefix.size() + suffix.size()) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return IsFileNumber(name);
}

// Returns whether the name is that of a log with a suffix behind it.
bool IsReplacedWal(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return IsWalFile(name);
}

}  // namespace

bool IsWalFile(std::string_view name) { return IsNumbered("", name, ".log"); }
bool IsTableFile(std::string_view name) { return IsNumbered("", name, ".sst"); }
bool IsBlobFile(std::string_view name) { return IsNumbered("", name, ".blob"); }

// Numbers have at least six digits and no further leading zeros, so shorter names are lower.
void SortByNumber(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
}

bool IsStoreFile(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "CURRENT",      "IDENTITY",         "LOCK",          "LOG", "LOG.old",
      kWalDamageFile, kFutileRebuildFile, kFoundDamageFile};
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  if (IsWalFile(name) || IsTableFile(name) || IsBlobFile(name)) return true;
  return IsNumbered("MANIFEST-", name, "") || IsNumbered("OPTIONS-", name, "") ||
         IsNumbered("OPTIONS-", name, ".dbtmp") || IsNumbered("", name, ".dbtmp") ||
         IsNumbered("LOG.old.", name, "") || IsReplacedWal(name, kDamagedWalSuffix) ||
         IsReplacedWal(name, kWholeWalSuffix);
}

// Names that are not the store's are not looked at. Uses lstat, since stat would follow a link.
absl::Status CheckStoreFiles(const std::string& path, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!IsStoreFile(name)) continue;
    const std::string file = path + "/" + name;
    struct stat about = {};
    if (lstat(file.c_str(), &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) {
      continue;
    }
    // A link to a directory is allowed.
    const bool is_elsewhere = stat(file.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
    if (is_elsewhere) continue;
    return FailedPrecondition(
        "{} is a symbolic link or not a regular file; put the file itself there", file);
  }
  return absl::OkStatus();
}

absl::Status CheckStoreDirectory(const std::string& path, rocksdb::Env& env) {
  std::vector<std::string> names;
  const rocksdb::Status listed = env.GetChildren(path, &names);
  if (listed.IsNotFound()) return absl::OkStatus();  // RocksDB creates it
  const std::string doing = fmt::format("cannot open the store at '{}'", path);
  if (!listed.ok()) {
    bool is_directory = true;
    if (env.IsDirectory(path, &is_directory).ok() && !is_directory) {
      return FailedPrecondition("{}: it is a file; choose a directory", doing);
    }
    return FromRocksDb(listed, doing);
  }
  bool has_current = false;
  std::string other;
  for (const std::string& name : names) {
    has_current = has_current || name == "CURRENT";
    if (IsTableFile(name) || IsBlobFile(name) || IsNumbered("MANIFEST-", name, "")) other = name;
  }
  RETURN_IF_ERROR(CheckStoreFiles(path, names));
  if (!has_current && !other.empty()) {
    return DataLoss(
        "{}: the store is damaged: its file CURRENT is missing, but {} and others exist", doing,
        other);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
