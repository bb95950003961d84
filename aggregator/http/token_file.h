// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// The token in a file that somebody else exchanges, as Kubernetes does every hour: without blanks
// behind it, of at most limits::kTokenBytesMax, and fit to stand in a header. NOT_FOUND or
// FAILED_PRECONDITION names the file, and nothing in it. Any thread; blocks on the disk.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace neurontrace
