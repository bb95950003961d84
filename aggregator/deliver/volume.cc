// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/volume.h"

#include <algorithm>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// NAME_MAX of Linux file systems.
constexpr size_t kPartBytesMax = 255;
// Small enough that the question check_continuation is asked often while a large manifest is
// written.
constexpr size_t kPieceBytes = 16u << 20;

bool IsVolumeNamePart(std::string_view part) {
  if (part.empty() || part == "." || part == ".." || part.size() > kPartBytesMax) return false;
  for (const char c : part) {
    // Names appear in terminals and manifests, and a backslash separates parts on Windows clients
    // of a volume.
    if (IsControl(c) || c == '\\') return false;
  }
  return true;
}

}  // namespace

bool IsVolumeName(std::string_view name) {
  if (name.size() > limits::kExportNameBytesMax) return false;
  while (true) {
    const size_t slash = name.find('/');
    if (!IsVolumeNamePart(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

absl::Status WriteWhole(Volume& volume, const std::string& name, std::string_view bytes,
                        const ContinuationCheck& check_continuation) {
  RETURN_IF_ERROR(check_continuation());
  ASSIGN_OR_RETURN(const std::unique_ptr<Volume::File> file, volume.Create(name, {}));
  while (!bytes.empty()) {
    RETURN_IF_ERROR(check_continuation());
    RETURN_IF_ERROR(file->Write(bytes.substr(0, kPieceBytes)));
    bytes.remove_prefix(std::min(bytes.size(), kPieceBytes));
  }
  RETURN_IF_ERROR(check_continuation());
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(check_continuation());
  return file->Commit();
}

}  // namespace neurontrace
