// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// The threads of a Python process, the main thread first. A plain value.
struct PythonStacks {
  std::vector<StackThread> threads;
  uint64_t left_out = 0;  // threads and frames beyond limits of lib/trace/stacks_limits.h
};

// Parses what `py-spy dump --json` prints (py-spy 0.4): an array of threads, each with its frames,
// the innermost first. Names come from the traced program and can be anything; they become clean
// and are cut to limits::kStackNameBytesMax. Fails with INVALID_ARGUMENT if the text is no such
// array, is nested deeper than limits::kStacksJsonDepthMax, or has more than
// limits::kStacksProgramBytesMax bytes. Members that are not needed are ignored. Pure.
absl::StatusOr<PythonStacks> ParsePythonStacks(std::string_view json, uint32_t pid);

}  // namespace neurontrace
