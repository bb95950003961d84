// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/watched_file.h"
#include "lib/daemon/effective_options.h"

namespace neurontrace {

// Follows the file of --config while a program runs. A new version is read and checked as a whole,
// as at the start. A good one is applied, each difference is logged, and options that need a
// restart are reported. A bad one changes nothing, and the log reports the reason once. Look is
// called by one thread, which it blocks for the disk; the other functions by any.
class ConfigReload {
 public:
  // Functions of the daemon that Look calls, on its thread.
  struct Hooks {
    // Parses the command line again with the current file, and remembers the result.
    std::function<absl::StatusOr<EffectiveOptions>()> read;
    // Applies the options in `at_once` of the configuration that was read last. Fails if they are
    // invalid; nothing has changed then.
    std::function<absl::Status()> apply;
  };
  // `path` empty: there is no file, and nothing ever changes. `at_once`: the options that `apply`
  // can apply. `clock` must outlive this.
  ConfigReload(std::string path, EffectiveOptions in_force, std::set<std::string> at_once,
               Hooks hooks, const Clock& clock);

  // Reloads the file if it has changed, or in any case with `anyway`.
  void Poll(bool anyway);

  // The result of the reloads so far, for metrics and /statusz.
  struct State {
    uint64_t taken = 0;    // good versions with a difference
    uint64_t refused = 0;  // invalid versions
    std::string problem;   // of the current file; empty: it is valid
    // Options whose values in the file take effect after a restart.
    std::vector<OptionChange> after_restart;
  };
  State state() const;
  // Returns the current value of each option.
  EffectiveOptions in_force() const;

 private:
  // Records that the current file is invalid; logs a new reason.
  void Refuse(const std::string& problem);

  // Used by the thread of Look only.
  WatchedFile file_;
  const std::set<std::string> at_once_;
  const Hooks hooks_;

  mutable Mutex mutex_;
  EffectiveOptions in_force_ NT_GUARDED_BY(mutex_);
  State state_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
