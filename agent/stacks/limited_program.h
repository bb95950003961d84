// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace {

// How a program ended, and what it printed. A plain value.
struct ProgramResult {
  enum class End : uint8_t {
    kExited,    // by itself; see exit_code
    kTimedOut,  // killed, as it took too long
    kTooLarge,  // killed, as it printed too much
  };
  End end = End::kExited;
  int exit_code = -1;  // of kExited; -1: a signal ended it
  std::string out;     // what it printed on stdout, up to the limit
  std::string err;     // the first bytes of its stderr
};

struct ProgramLimits {
  uint64_t time_ns = 0;
  size_t out_bytes_max = 0;
  size_t err_bytes_max = 0;  // further ones are read and discarded
  // Once it is true, the program is killed as if its time were over. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Runs a program to its end, with no standard input, with an environment of PATH and LC_ALL only,
// and without any other descriptor of this process. `command` is its absolute path and its
// arguments; no shell is involved. A program beyond a limit is killed, with its children in the
// same process group, and has ended when this returns. Fails with NOT_FOUND, naming the path, if it
// cannot be started, and with INTERNAL if the system is out of descriptors or processes. Blocks.
absl::StatusOr<ProgramResult> RunLimited(const std::vector<std::string>& command,
                                         const ProgramLimits& limits);

}  // namespace neurontrace
