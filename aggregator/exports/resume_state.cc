// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/resume_state.h"

#include <cstddef>
#include <utility>

#include "aggregator/export/output_files.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {

absl::StatusOr<ResumeState> ResumeState::Of(const v1::ExportRequest& request) {
  if (static_cast<size_t>(request.held_size()) > limits::kExportHeldFilesMax) {
    return ResourceExhausted("held: {} files exceed the limit of {}; restart with --no-resume",
                             request.held_size(), limits::kExportHeldFilesMax);
  }
  ResumeState held;
  for (const v1::HeldFile& file : request.held()) {
    if (!IsOutputName(file.name()) || file.bytes() == 0 || file.sha256().size() != kSha256Bytes) {
      return InvalidArgument(
          "held: '{}' of {} bytes with a hash of {} bytes is not a valid partial file", file.name(),
          file.bytes(), file.sha256().size());
    }
    const auto [at, is_new] =
        held.files_.try_emplace(file.name(), ResumePrefix(file.bytes(), file.sha256()));
    if (!is_new) return InvalidArgument("held: {} twice", file.name());
    held.bytes_ = AddSaturating(held.bytes_, file.bytes());
  }
  return held;
}

ResumePrefix ResumeState::Take(std::string_view name) {
  const auto found = files_.find(std::string(name));
  if (found == files_.end()) return {};
  ResumePrefix prefix = std::move(found->second);
  files_.erase(found);
  return prefix;
}

std::string ResumeState::Untaken() const {
  std::string first;
  for (const auto& [name, prefix] : files_) {
    // The smallest name, so that the error does not depend on the order in a hash table.
    if (first.empty() || name < first) first = name;
  }
  return first;
}

}  // namespace neurontrace
