// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/limits.h"

// As trace/limits.h, for the mapping files of frameworks.
namespace neurontrace::limits {

// Entries of one, beyond which the rest of it is a decode loss, and operations of one entry, beyond
// which the entry is one.
inline constexpr uint64_t kMappingEntriesMax = 1u << 20;
inline constexpr size_t kMappingOperationsPerEntryMax = 1'024;

static_assert(kMappingOperationsPerEntryMax * 21 + 2 <= kStringBytesMax,
              "numbers of 20 signs and their commas must fit into an attribute");

}  // namespace neurontrace::limits
