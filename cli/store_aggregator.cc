// SPDX-License-Identifier: Apache-2.0
#include "cli/store_aggregator.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// Opening a store of terabytes takes minutes; Ctrl-C ends the wait.
constexpr uint32_t kStartMs = 3'600'000;

bool CanRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

}  // namespace

// The aggregator would create a store in a directory that has none.
absl::StatusOr<std::unique_ptr<StoreAggregator>> StoreAggregator::Start(
    const std::string& store, const ProgramPlaces& places) {
  if (access((store + "/CURRENT").c_str(), F_OK) != 0) {
    return NotFound(
        "there is no store in {}; name the directory of --store of an aggregator, or a copy of it",
        store);
  }
  ASSIGN_OR_RETURN(const std::string program, FindAggregator(places, CanRun));
  const char* const temporary = std::getenv("TMPDIR");
  ASSIGN_OR_RETURN(
      std::unique_ptr<ScratchDirectory> directory,
      ScratchDirectory::Make(temporary == nullptr || *temporary == '\0' ? "/var/tmp" : temporary));
  const std::vector<std::string> command = {
      program, "--listen",         "127.0.0.1:0", "--store",
      store,   "--health-address", "127.0.0.1:0", "--no-udp-probes"};
  ASSIGN_OR_RETURN(std::unique_ptr<DaemonProcess> process,
                   DaemonProcess::Start(command, directory->path() + "/aggregator.log"));
  return std::unique_ptr<StoreAggregator>(
      new StoreAggregator(store, std::move(directory), std::move(process)));
}

absl::StatusOr<std::string> StoreAggregator::WaitForAddress(
    const std::function<bool()>& is_abandoned) {
  auto address = process_->WaitForLine("listening on ", kStartMs, is_abandoned);
  if (address.ok() || is_abandoned()) return address;
  return Unavailable(
      "{} cannot be opened; if an aggregator runs on it, omit --store and name that with "
      "--aggregator HOST:PORT. {}",
      store_, std::string(address.status().message()));
}

}  // namespace neurontrace::cli
