// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_directory.h"

#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "trace/framework_mapping.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr int kDepthMax = 4;

}  // namespace

bool IsTraceFileName(std::string_view name) {
  if (IsFrameworkMappingName(name)) return true;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name == "trace.json" || name.ends_with(".trace.json");
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

namespace {

void SetState(const struct stat& status, FileState& state) {
  state.bytes = static_cast<uint64_t>(status.st_size);
  state.modified_ns = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                      static_cast<uint64_t>(status.st_mtim.tv_nsec);
  state.inode = status.st_ino;
}

}  // namespace

bool LookAtFile(const std::string& path, FileState& state) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  SetState(status, state);
  return true;
}

std::map<std::string, FileState> ListTraceFiles(const std::string& directory, bool& truncated) {
  std::map<std::string, FileState> files;
  truncated = false;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(
      directory, std::filesystem::directory_options::skip_permission_denied, error);
  uint32_t entries = 0;
  for (const std::filesystem::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    if (++entries > limits::kFrameworkDirectoryEntriesMax) {
      truncated = true;
      break;
    }
    if (it.depth() + 1 >= kDepthMax + 1) it.disable_recursion_pending();
    const std::string path = it->path().string();
    struct stat status {};
    if (!IsTraceFileName(it->path().filename().string()) || lstat(path.c_str(), &status) != 0 ||
        (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))) {
      continue;
    }
    FileState state;
    SetState(status, state);
    files.emplace(it->path().lexically_relative(directory).string(), state);
  }
  return files;
}

}  // namespace neurontrace
