// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace neurontrace {

bool IsUtf8Text(std::string_view text);

// Checks that what was given to the options of an app that has parsed, and of its chosen commands,
// is UTF-8: a message of protocol buffers takes nothing else, and gRPC does not say which field was
// wrong. Control characters are refused, too: they would come back in errors and tables. Options in
// `paths`, by their long names or those of positional ones, may be any bytes, as file names are.
// INVALID_ARGUMENT names the option and shows the value.
absl::Status CheckEffectiveOptions(const CLI::App& app, const std::set<std::string_view>& paths);

}  // namespace neurontrace
