// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace neurontrace {

// Returns whether all of `text` is valid UTF-8.
bool IsUtf8Text(std::string_view text);

// Checks that the values given to the options of a parsed app, and of its chosen commands, are
// UTF-8: protocol buffers accept nothing else, and gRPC does not report which field was wrong.
// Control characters are refused too, as they would reappear in errors and tables. Options in
// `paths`, by their long names or those of positional ones, may have any bytes, as file names do.
// Fails with INVALID_ARGUMENT, naming the option and quoting the value.
absl::Status CheckEffectiveOptions(const CLI::App& app, const std::set<std::string_view>& paths);

}  // namespace neurontrace
