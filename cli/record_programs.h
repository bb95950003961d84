// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace::cli {

// The files that `record` and `doctor` need besides their own program. A plain value; the functions
// below are called on the main thread.
struct RecordPrograms {
  std::string agent;
  std::string aggregator;
  std::string tap;  // the tap's file, if the user gives it; empty: it is searched for
};

// Where these files are searched for.
struct ProgramPlaces {
  std::string own_directory;  // of the `neurontrace` program
  std::string programs;       // of the daemons, if the user gives it; empty: own_directory
  std::string tap;            // the file that the user says is the tap; empty: to be found
};

// Returns the directory of the running program by /proc/self/exe; "." if it cannot be read.
std::string OwnDirectory();

// Returns the given tap, or the first of those beside the programs, in ../lib, ../lib/neurontrace
// or ../lib64; "" if there is none. `is_there` returns whether a file exists.
std::string FindTap(const ProgramPlaces& places,
                    const std::function<bool(const std::string&)>& is_there);

// Returns the library for annotations (NVTX_INJECTION64_PATH), which packages have beside the tap;
// "" if there is none.
std::string FindAnnotationLibrary(const std::string& tap,
                                  const std::function<bool(const std::string&)>& is_there);

// Finds all of them. Fails with NOT_FOUND, naming the missing file, where it was searched for, and
// the option that sets it.
absl::StatusOr<RecordPrograms> FindRecordPrograms(
    const ProgramPlaces& places, const std::function<bool(const std::string&)>& is_there);

// Finds the aggregator alone, and fails in the same way.
absl::StatusOr<std::string> FindAggregator(const ProgramPlaces& places,
                                           const std::function<bool(const std::string&)>& is_there);

}  // namespace neurontrace::cli
