// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/output_files.h"

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// An allow-list of characters that file systems, object stores and shells take without quoting.
bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-=+@").find(c) != std::string_view::npos;
}

// Returns whether the text may be one part of a path. "." and ".." would leave the directory, and
// an empty part would make the path absolute or ambiguous.
bool IsPart(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return false;
  for (const char c : part) {
    if (!IsNameCharacter(c)) return false;
  }
  return true;
}

}  // namespace

bool IsOutputName(std::string_view name) {
  if (name.size() > limits::kExportNameBytesMax) return false;
  // Every part is checked, so that an absolute path fails with its empty first part.
  while (true) {
    const size_t slash = name.find('/');
    if (!IsPart(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace neurontrace
