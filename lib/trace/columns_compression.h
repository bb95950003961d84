// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Compresses `columns` with zstd (RFC 8878), level 1. Empty columns become an empty string. Uses
// memory of the calling thread; any thread may call.
std::string CompressColumns(std::string_view columns);
// Stores the uncompressed columns in `out`. Fails with INVALID_ARGUMENT, with `out` empty, unless
// `compressed` is exactly one frame of `columns_bytes` bytes within the limits; nothing is
// allocated before that is known. Any thread.
absl::Status UncompressColumns(std::string_view compressed, uint32_t columns_bytes,
                               std::string& out);

}  // namespace neurontrace
