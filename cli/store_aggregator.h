// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/daemon_process.h"
#include "cli/record_programs.h"
#include "cli/scratch_directory.h"

namespace neurontrace::cli {

// An aggregator of this command's own, for a store that no other aggregator runs on: it listens on
// a free port of the loopback interface, receives nothing, and ends with this object. It writes to
// the store as every aggregator does at its start. Made on the program's first thread while there
// is no other, because it forks.
class StoreAggregator {
 public:
  // Starts the program, which then opens the store. Fails with NOT_FOUND if there is no store in
  // the directory or the program is missing, and otherwise with the system's reason.
  static absl::StatusOr<std::unique_ptr<StoreAggregator>> Start(const std::string& store,
                                                                const ProgramPlaces& places);
  // Waits until it serves, and returns its HOST:PORT. Fails with UNAVAILABLE and the end of its log
  // if it cannot open the store, for example because an aggregator has it open, or if
  // `is_abandoned`, which is polled, returns true. A large store takes its time.
  absl::StatusOr<std::string> WaitForAddress(const std::function<bool()>& is_abandoned);

 private:
  StoreAggregator(std::string store, std::unique_ptr<ScratchDirectory> directory,
                  std::unique_ptr<DaemonProcess> process)
      : store_(std::move(store)), directory_(std::move(directory)), process_(std::move(process)) {}

  const std::string store_;
  // Has the log. Removed after the process has ended.
  const std::unique_ptr<ScratchDirectory> directory_;
  const std::unique_ptr<DaemonProcess> process_;
};

}  // namespace neurontrace::cli
