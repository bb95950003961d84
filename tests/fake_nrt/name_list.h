// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tests/fake_nrt/nrt_api.h"

namespace neurontrace {

// An array of C strings as the runtime hands them out: each string and the array come from
// malloc(), so that the caller may use free() as well as the runtime's helper.
NRT_STATUS MakeNameList(const std::vector<std::string_view>& names, const char*** list,
                        size_t* count);
void FreeNameList(const char** list, size_t count);

}  // namespace neurontrace
