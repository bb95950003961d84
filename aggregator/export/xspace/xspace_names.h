// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neurontrace {

// "2025_12_18_15_35_56", as TensorBoard names a run that began then (UTC).
std::string XSpaceRunName(uint64_t epoch_ns);

// An instance id as a part of a file's name: at most 128 bytes, none of them a slash.
std::string XSpaceHostName(std::string_view instance_id);

}  // namespace neurontrace
