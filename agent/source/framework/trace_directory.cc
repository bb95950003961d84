// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_directory.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "trace/framework_limits.h"
#include "trace/framework_mapping.h"

namespace neurontrace {
namespace {

constexpr int kDepthMax = 4;

void AddEntry(const std::filesystem::directory_entry& entry, const std::string& directory,
              DirectoryListing& listing) {
  std::error_code error;
  if (!entry.is_symlink(error) && entry.is_directory(error)) return;
  std::string path = entry.path().lexically_relative(directory).string();
  struct stat status {};
  if (!MayBeTraceFileName(entry.path().filename().string())) {
    if (listing.others++ == 0 || path < listing.other) listing.other = std::move(path);
    return;
  }
  if (lstat(entry.path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  listing.files.emplace(std::move(path), StateOf(status));
  if (listing.files.size() > limits::kFrameworkDirectoryFilesMax) {
    listing.files.erase(std::prev(listing.files.end()));
    ++listing.files_beyond;
  }
}

}  // namespace

bool IsTraceFileName(std::string_view name) {
  if (IsFrameworkMappingName(name)) return true;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name == "trace.json" || name.ends_with(".trace.json");
}

bool MayBeTraceFileName(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".pb");
}

uint32_t PidOfDirectory(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return 0;
  std::string_view folder = path.substr(0, slash);
  folder.remove_prefix(folder.rfind('/') + 1);
  constexpr std::string_view kMark = "_pid_";
  const size_t mark = folder.rfind(kMark);
  if (mark == std::string_view::npos) return 0;
  const std::string_view digits = folder.substr(mark + kMark.size());
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  return error == std::errc() && end == digits.data() + digits.size() ? pid : 0;
}

bool LookAtFile(const std::string& path, FileState& state) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  state = StateOf(status);
  return true;
}

DirectoryListing ListTraceFiles(const std::string& directory) {
  DirectoryListing listing;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(
      directory, std::filesystem::directory_options::skip_permission_denied, error);
  uint32_t entries = 0;
  for (const std::filesystem::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    if (++entries > limits::kFrameworkDirectoryEntriesMax) {
      listing.is_truncated = true;
      break;
    }
    std::error_code ignored;
    if (it.depth() >= kDepthMax && it->is_directory(ignored) && !it->is_symlink(ignored)) {
      it.disable_recursion_pending();
      if (listing.too_deep++ == 0) {
        listing.deep_folder = it->path().lexically_relative(directory).string();
      }
    } else {
      AddEntry(*it, directory, listing);
    }
  }
  listing.is_whole = !error && !listing.is_truncated && listing.files_beyond == 0;
  return listing;
}

}  // namespace neurontrace
