// SPDX-License-Identifier: Apache-2.0
#include "aggregator/held_files.h"

#include <algorithm>
#include <utility>

#include "aggregator/export/output_files.h"
#include "base/status.h"
#include "base/time_units.h"
#include "trace/export_limits.h"

namespace neurontrace {

bool HeldPrefix::Skip(std::string_view& bytes) {
  if (left_ == 0) return true;
  const std::string_view held = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
  hash_.Update(held);
  left_ -= held.size();
  bytes.remove_prefix(held.size());
  return left_ != 0 || hash_.Finish() == sha256_;
}

absl::StatusOr<HeldFiles> HeldFiles::Of(const v1::ExportRequest& request) {
  if (static_cast<size_t>(request.held_size()) > limits::kExportHeldFilesMax) {
    return ResourceExhausted("held: {} files; at most {}: begin anew", request.held_size(),
                             limits::kExportHeldFilesMax);
  }
  HeldFiles held;
  for (const v1::HeldFile& file : request.held()) {
    if (!IsOutputName(file.name()) || file.bytes() == 0 || file.sha256().size() != kSha256Bytes) {
      return InvalidArgument(
          "held: '{}' of {} bytes with a hash of {} bytes is no file's beginning", file.name(),
          file.bytes(), file.sha256().size());
    }
    const auto [at, is_new] =
        held.files_.try_emplace(file.name(), HeldPrefix(file.bytes(), file.sha256()));
    if (!is_new) return InvalidArgument("held: {} twice", file.name());
    held.bytes_ = AddSaturating(held.bytes_, file.bytes());
  }
  return held;
}

HeldPrefix HeldFiles::Take(std::string_view name) {
  const auto found = files_.find(std::string(name));
  if (found == files_.end()) return {};
  HeldPrefix prefix = std::move(found->second);
  files_.erase(found);
  return prefix;
}

std::string HeldFiles::Untaken() const {
  std::string first;
  for (const auto& [name, prefix] : files_) {
    if (first.empty() || name < first) first = name;
  }
  return first;
}

}  // namespace neurontrace
