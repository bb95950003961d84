// SPDX-License-Identifier: Apache-2.0
#include "agent/disk_room.h"

#include <filesystem>
#include <system_error>

namespace neurontrace {

void DiskRoom::Ask() {
  if (answer_->is_awaited.exchange(true)) return;
  io_.PostTask([directory = directory_, answer = answer_] {
    std::error_code error;
    // May block for long on a network volume; only the spool's thread waits.
    const auto space = std::filesystem::space(directory, error);
    if (!error) answer->bytes = space.available;
    // bytes is written before is_known, which free_bytes() reads first.
    answer->is_known = !error;
    answer->is_awaited = false;
  });
}

std::optional<uint64_t> DiskRoom::free_bytes() const {
  return answer_->is_known ? std::optional(answer_->bytes.load()) : std::nullopt;
}

}  // namespace neurontrace
