// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace neurontrace {

// Raises the process's limit of open files to what it may have, at most limits::kDescriptorsMax:
// shells and container engines start programs with 1,024, and a fleet has more connections.
// FAILED_PRECONDITION, with the way out, where that is less than limits::kDescriptorsMin.
absl::Status RaiseDescriptorLimit();

}  // namespace neurontrace
