// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace neurontrace {

// A constant: the commit that this was built from, with -dirty where files were changed since, or
// "unknown". cmake/build_commit.cmake writes the file that defines it at each build, so that a new
// commit compiles that one file only.
extern const char* const kBuildCommit;

}  // namespace neurontrace
