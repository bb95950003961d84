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

// Where the hardware clocks of network cards are shown; other directories are for tests.
struct PhcPaths {
  std::string shown = "/sys/class/ptp";
  std::string devices = "/dev";
};

// A hardware clock that keeps UTC and says how well: /dev/ptpN with an error bound in sysfs, as the
// ENA driver shows it (phc_error_bound, in ns). A clock without such a word may keep any time at
// all and is not used. One thread; a reading takes tens of microseconds.
class PhcReader {
 public:
  // The first such clock that may be opened. NOT_FOUND where there is none.
  static absl::StatusOr<PhcReader> Open(FileSystem& files, const PhcPaths& paths);

  // UNAVAILABLE where the card does not answer or gives no bound now.
  absl::StatusOr<UtcReading> Read(const HostClocks& clocks);

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

// The error bound as sysfs shows it, in ns; nullopt for what is none, or one beyond a second.
std::optional<uint64_t> ParsePhcErrorBound(std::string_view text);

// The tightest of the samples of PTP_SYS_OFFSET_EXTENDED, put onto raw by snapshots taken before
// and after; nullopt where no sample makes sense, or REALTIME was set meanwhile.
std::optional<UtcReading> UtcFromPhc(const ptp_sys_offset_extended& samples,
                                     const ClockSnapshot& before, const ClockSnapshot& after,
                                     uint64_t error_bound_ns);

}  // namespace neurontrace
