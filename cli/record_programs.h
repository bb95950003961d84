// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace::cli {

// What `record` and `doctor` need besides the command itself.
struct RecordPrograms {
  std::string agent;
  std::string aggregator;
  std::string tap;
};

struct ProgramPlaces {
  std::string own_directory;  // that the `neurontrace` program is in
  std::string programs;       // where the user says the daemons are; empty: beside our own
  std::string tap;            // the file that the user says is the tap; empty: to be found
};

// The directory of the running program.
std::string OwnDirectory();

// The tap where it was named, or beside the programs, in ../lib, ../lib/neurontrace or ../lib64;
// empty where none is. `is_there` says whether a file is.
std::string FindTap(const ProgramPlaces& places,
                    const std::function<bool(const std::string&)>& is_there);

// NOT_FOUND names what is not there, where it was looked for, and the option that says it.
absl::StatusOr<RecordPrograms> FindRecordPrograms(
    const ProgramPlaces& places, const std::function<bool(const std::string&)>& is_there);

}  // namespace neurontrace::cli
