// SPDX-License-Identifier: Apache-2.0
// The environment variables that say which rank and job a worker is. An allow-list: nothing else of
// a process's environment ever leaves it, because environments hold secrets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neurontrace::tap {

// A longer "NAME=VALUE" is left out.
inline constexpr uint64_t kEnvironmentValueBytesMax = 4096;

bool IsEnvironmentFact(const char* name, size_t name_bytes);

// Whether a variable of the runtime's such as NEURON_RT_INSPECT_ENABLE is switched on.
bool IsSwitchedOn(const char* value);

}  // namespace neurontrace::tap
