// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace neurontrace {

// Raises the process's limit of open files to what it may have, at most limits::kDescriptorsMax:
// shells and container engines start programs with 1,024, and a fleet has more connections.
void RaiseDescriptorLimit();

}  // namespace neurontrace
