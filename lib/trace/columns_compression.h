// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// zstd level 1 of `columns`, and back. Uncompress refuses (INVALID_ARGUMENT) anything but one frame
// of exactly `columns_bytes` bytes within the limits; nothing is allocated before that is known. No
// columns are no bytes. Both reuse per-thread contexts; any thread may call.
std::string CompressColumns(std::string_view columns);
absl::Status UncompressColumns(std::string_view compressed, uint32_t columns_bytes,
                               std::string& out);

}  // namespace neurontrace
