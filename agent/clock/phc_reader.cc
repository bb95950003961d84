// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/phc_reader.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Limits of what is read from sysfs: the entries of its directory, and the bytes of a bound.
constexpr size_t kPhcsMax = 64;
constexpr size_t kBoundTextBytesMax = 64;
constexpr uint64_t kBoundMaxNs = 1'000'000'000;  // the driver shows all ones where it has none
// Samples of one reading; the narrowest is used.
constexpr unsigned kSamples = 5;
// How far REALTIME may move against raw while samples are taken; more means that it was set.
constexpr int64_t kStrayNs = 5'000;
// Descheduled in between: the interval would be too wide to be of use.
constexpr uint64_t kReadingMaxNs = 100'000'000;

// Returns the time in ns since the epoch; nothing for a time that is not after it, is beyond the
// year 2242, or has an invalid fraction.
std::optional<uint64_t> Nanoseconds(const ptp_clock_time& time) {
  if (time.sec <= 0 || time.sec > (int64_t{1} << 33) || time.nsec >= 1'000'000'000) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(time.sec) * 1'000'000'000u + time.nsec;
}

// Returns the beginning of a file in sysfs, at most kBoundTextBytesMax bytes.
absl::StatusOr<std::string> ReadText(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem::File> file, files.OpenForReading(path));
  return file->Read(0, kBoundTextBytesMax);
}

}  // namespace

std::optional<uint64_t> ParsePhcErrorBound(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  uint64_t bound_ns = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), bound_ns);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  if (bound_ns > kBoundMaxNs) return std::nullopt;
  return bound_ns;
}

std::optional<UtcReading> UtcFromPhc(const ptp_sys_offset_extended& samples,
                                     const ClockSnapshot& before, const ClockSnapshot& after,
                                     uint64_t error_bound_ns) {
  const int64_t stray_ns = RealtimeMinusRaw(after) - RealtimeMinusRaw(before);
  const uint64_t took_ns = after.raw_end_ns - before.raw_begin_ns;
  if (std::abs(stray_ns) > kStrayNs || took_ns > kReadingMaxNs) return std::nullopt;
  // The most by which REALTIME may have run faster or slower than raw meanwhile.
  const double rate = std::abs(SteeringRate(after)) + kUnseenSlew;
  std::optional<UtcReading> best;
  for (unsigned i = 0; i < std::min<unsigned>(samples.n_samples, PTP_MAX_SAMPLES); ++i) {
    const auto realtime_begin = Nanoseconds(samples.ts[i][0]);
    const auto phc = Nanoseconds(samples.ts[i][1]);
    const auto realtime_end = Nanoseconds(samples.ts[i][2]);
    if (!realtime_begin || !phc || !realtime_end) continue;
    if (*realtime_begin > *realtime_end || *realtime_end > after.realtime_ns) continue;
    if (after.realtime_ns - *realtime_begin > kReadingMaxNs) continue;
    // The interval on raw in which the clock was read, computed backwards from the snapshot after
    // it. The rate of REALTIME against raw is only known within `rate`, so each end is moved
    // outwards.
    const double age_begin_ns = static_cast<double>(after.realtime_ns - *realtime_begin);
    const double age_end_ns = static_cast<double>(after.realtime_ns - *realtime_end);
    const auto raw_begin =
        after.raw_begin_ns - static_cast<uint64_t>(std::ceil(age_begin_ns * (1 + rate)));
    const auto raw_end = after.raw_end_ns - static_cast<uint64_t>(age_end_ns * (1 - rate));
    const uint64_t within_ns = (raw_end - raw_begin + 1) / 2 + error_bound_ns;
    if (*phc < within_ns) continue;
    // Of equally narrow samples the first is kept.
    if (best && best->utc_latest_ns - best->utc_earliest_ns <= 2 * within_ns) continue;
    best = UtcReading{.source = UtcSource::kPhc,
                      .raw_ns = raw_begin + (raw_end - raw_begin) / 2,
                      .utc_earliest_ns = *phc - within_ns,
                      .utc_latest_ns = *phc + within_ns};
  }
  return best;
}

absl::StatusOr<PhcReader> PhcReader::Open(FileSystem& files, const PhcPaths& paths) {
  ASSIGN_OR_RETURN(const std::vector<FileSystem::Entry> clocks, files.List(paths.shown, kPhcsMax));
  // A clock that this process may not open is skipped, and is the reason if there is no other.
  absl::Status status = NotFound("{} has no clock with an error bound", paths.shown);
  for (const FileSystem::Entry& clock : clocks) {
    const std::string bound_path = paths.shown + "/" + clock.name + "/device/phc_error_bound";
    if (!ReadText(files, bound_path).ok()) continue;
    const std::string device = paths.devices + "/" + clock.name;
    UniqueFd fd(open(device.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) return PhcReader(files, std::move(fd), clock.name, bound_path);
    status = NotFound("{} cannot be opened: {}", device, strerror(errno));
  }
  return status;
}

absl::StatusOr<UtcReading> PhcReader::Read(const HostClocks& clocks) {
  ptp_sys_offset_extended samples{};
  samples.n_samples = kSamples;
  const ClockSnapshot before = ReadHostClocks(clocks);
  if (ioctl(device_.get(), PTP_SYS_OFFSET_EXTENDED, &samples) != 0) {
    return Unavailable("{}: PTP_SYS_OFFSET_EXTENDED: {}", name_, strerror(errno));
  }
  const ClockSnapshot after = ReadHostClocks(clocks);
  // In this order: the driver's bound belongs to the reading before it.
  ASSIGN_OR_RETURN(const std::string text, ReadText(*files_, bound_path_));
  const std::optional<uint64_t> bound_ns = ParsePhcErrorBound(text);
  if (!bound_ns) return Unavailable("{}: the error bound is currently unknown", name_);
  const auto reading = UtcFromPhc(samples, before, after, *bound_ns);
  if (!reading) return Unavailable("{}: the reading is implausible", name_);
  return *reading;
}

}  // namespace neurontrace
