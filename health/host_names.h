// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace neurontrace {

// Whether a request with this Host header (HOST or HOST:PORT) may be answered. A web page of
// somebody else's can let its own name point to this machine (DNS rebinding) and would then read
// the answer as its own; the browser sends that name. Accepted are addresses, names that nobody can
// register (a single label, .localhost, .local, .internal, .home.arpa, .test), and `names`. An
// empty header is accepted, as browsers always send one. Pure.
bool IsOwnHost(std::string_view host, std::span<const std::string> names);

}  // namespace neurontrace
