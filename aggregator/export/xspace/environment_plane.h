// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neurontrace {

// Appends to the bytes of an XSpace the plane by which its viewer knows when the profile began and
// ended, in ns since the epoch; docs/formats/xspace.md. `verdict`: the certificate's, or empty.
void AppendEnvironmentPlane(uint64_t begin_ns, uint64_t end_ns, std::string_view verdict,
                            int64_t id, std::string& out);

}  // namespace neurontrace
