// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/small_file.h"
#include "daemon/option_texts.h"

namespace neurontrace {

// Follows the file of --config while a program runs. A new version is read and checked as a whole,
// as at a start: a good one is taken, each difference is logged, and what takes a restart is said;
// a bad one changes nothing, and the log says once what is wrong.
//
// Look by one thread, which it keeps waiting for the disk; state by any.
class ConfigReload {
 public:
  struct Hooks {
    // Reads the command line again, with the file as it is now, and keeps what it gives.
    std::function<absl::StatusOr<OptionTexts>()> read;
    // Brings into force, of what was read last, the options of `at_once`. An error is one of the
    // configuration: nothing is in force then that was not before.
    std::function<absl::Status()> apply;
  };
  // `path` empty: there is no file, and nothing ever changes. `at_once`: the options that `apply`
  // knows. `clock` outlives this.
  ConfigReload(std::string path, OptionTexts in_force, std::set<std::string> at_once, Hooks hooks,
               const Clock& clock);

  // Takes what the file says now, where it is another one than before, or in any case.
  void Look(bool anyway);

  struct State {
    uint64_t taken = 0;    // good versions that said something new
    uint64_t refused = 0;  // versions that were bad
    std::string problem;   // of the file as it is now; empty: it is good
    // Options that the file sets otherwise than they are, until a restart.
    std::vector<OptionChange> after_restart;
  };
  State state() const;
  // What each option is now.
  OptionTexts in_force() const;

 private:
  void Refuse(const std::string& problem);

  WatchedFile file_;
  const std::set<std::string> at_once_;
  const Hooks hooks_;

  mutable std::mutex mutex_;
  OptionTexts in_force_;  // guarded by mutex_, as the next
  State state_;
};

}  // namespace neurontrace
