// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/ptp_clock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/file_system.h"
#include "lib/base/unique_fd.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Where the hardware clocks of network cards are found; tests give other directories.
struct PhcPaths {
  // Has a directory for each clock, with the attributes of its driver.
  std::string shown = "/sys/class/ptp";
  // Has each clock's device, under the same name.
  std::string devices = "/dev";
};

// Reads a PTP hardware clock that keeps UTC with a known error: /dev/ptpN with an error bound in
// sysfs, as Amazon's ENA driver provides it (phc_error_bound, in ns). A clock without such a bound
// may keep any time and is not used. One thread; a reading takes tens of microseconds. `files`
// outlives it.
class PhcReader {
 public:
  // Opens the first such clock that this process may open. Fails with NOT_FOUND if there is none.
  static absl::StatusOr<PhcReader> Open(FileSystem& files, const PhcPaths& paths);

  // Returns UTC as an interval on raw. Fails with UNAVAILABLE if the card does not answer, gives no
  // bound at the moment, or gives an implausible reading.
  absl::StatusOr<UtcReading> Read(const HostClocks& clocks);

  // Returns the clock's name in sysfs.
  const std::string& name() const { return name_; }

 private:
  PhcReader(FileSystem& files, UniqueFd device, std::string name, std::string bound_path)
      : files_(&files),
        device_(std::move(device)),
        name_(std::move(name)),
        bound_path_(std::move(bound_path)) {}

  FileSystem* files_;
  UniqueFd device_;
  std::string name_;  // "ptp0"
  std::string bound_path_;
};

// Parses the error bound as sysfs shows it, in ns. Returns nothing for other text and for a bound
// over a second, which the driver shows if it has none. Pure.
std::optional<uint64_t> ParsePhcErrorBound(std::string_view text);

// Returns the narrowest of the samples of PTP_SYS_OFFSET_EXTENDED (linux/ptp_clock.h: REALTIME,
// PHC, REALTIME), mapped onto raw by snapshots taken before and after. Returns nothing if no sample
// is plausible, or if REALTIME was set in between. Pure.
std::optional<UtcReading> UtcFromPhc(const ptp_sys_offset_extended& samples,
                                     const ClockSnapshot& before, const ClockSnapshot& after,
                                     uint64_t error_bound_ns);

}  // namespace neurontrace
