// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace::cli {

// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 become "?".
std::string JsonText(std::string_view text);

}  // namespace neurontrace::cli
