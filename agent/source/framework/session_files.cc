// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/session_files.h"

#include <filesystem>
#include <system_error>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr std::string_view kXSpaceSuffix = ".xplane.pb";

// Returns the path without ".gz" at its end.
std::string_view WithoutGz(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path;
}

}  // namespace

std::string_view FolderOf(std::string_view path) { return path.substr(0, path.rfind('/') + 1); }

bool IsXSpaceName(std::string_view path) { return path.ends_with(kXSpaceSuffix); }

bool IsPerfettoTraceName(std::string_view path) {
  path = WithoutGz(path);
  return path.substr(path.rfind('/') + 1) == "perfetto_trace.json";
}

std::optional<std::string> XSpaceOfTrace(std::string_view path) {
  constexpr std::string_view kTraceSuffix = ".trace.json";
  path = WithoutGz(path);
  if (!path.ends_with(kTraceSuffix)) return std::nullopt;
  path.remove_suffix(kTraceSuffix.size());
  return std::string(path) + std::string(kXSpaceSuffix);
}

std::optional<std::string> OnlyXSpaceIn(const std::string& folder) {
  std::optional<std::string> only;
  std::error_code error;
  uint32_t entries = 0;
  std::filesystem::directory_iterator it(folder.empty() ? "." : folder, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    // A folder with too many entries counts as one without an answer, as the search would block for
    // long.
    if (++entries > limits::kFrameworkDirectoryEntriesMax) return std::nullopt;
    const std::string name = it->path().filename().string();
    if (!IsXSpaceName(name)) continue;
    if (only) return std::nullopt;
    only = folder + name;
  }
  return only;
}

}  // namespace neurontrace
