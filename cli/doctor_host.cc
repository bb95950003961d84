// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"

namespace neurontrace::cli {
namespace {

constexpr char kClockSource[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
// The merged timeline does not depend on this, as agents measure offsets themselves. Files and logs
// of other programs could not be compared with it beyond this error.
constexpr int64_t kClockErrorMaxNs = 100'000'000;
// The kernel's own default for a process (RLIMIT_MEMLOCK, getrlimit(2)) before Linux 5.16; less was
// set by somebody.
constexpr uint64_t kLockedBytesMin = 64u << 10;
// An agent needs two descriptors per worker, an aggregator some per agent and for its store.
constexpr uint64_t kOpenFilesMin = 4096;

// Clock sources that the vDSO reads without a system call, and that do not jump.
constexpr const char* kGoodSources[] = {"tsc", "kvm-clock", "arch_sys_counter",
                                        "hyperv_clocksource_tsc_page"};

// Returns the first line of a small file; "" if it cannot be read.
std::string FirstLine(HostView& host, const std::string& path) {
  const auto text = host.Read(path, 0, 256);
  if (!text.ok()) return "";
  return text->substr(0, text->find('\n'));
}

// Warns about clock sources that are slow to read. Unknown ones are only a note, as containers may
// hide the file.
Finding CheckClockSource(HostView& host) {
  Finding finding{.check = "clock source"};
  const std::string source = FirstLine(host, kClockSource);
  const bool is_good = std::any_of(std::begin(kGoodSources), std::end(kGoodSources),
                                   [&source](const char* good) { return source == good; });
  if (is_good) {
    finding.what = source;
    return finding;
  }
  finding.severity = source.empty() ? Severity::kNote : Severity::kWarning;
  finding.what = source.empty() ? fmt::format("unknown: {} cannot be read", kClockSource)
                                : fmt::format(
                                      "{} is slow to read, and the runtime reads it for "
                                      "every event",
                                      source);
  if (!source.empty())
    finding.fix = fmt::format("echo tsc > {} (as root), if tsc is available", kClockSource);
  return finding;
}

// Reports whether a daemon steers the clock, and its own estimate of the error.
Finding CheckDiscipline(HostView& host) {
  Finding finding{.check = "time"};
  const auto clock = host.discipline();
  if (!clock) {
    finding.severity = Severity::kNote;
    finding.what = "unknown: adjtimex is not permitted here";
    return finding;
  }
  const std::string error =
      FormatDuration(static_cast<uint64_t>(std::max<int64_t>(clock->error_max_ns, 0)));
  if (clock->synchronised && clock->error_max_ns <= kClockErrorMaxNs) {
    finding.what = "synchronised, within " + error;
    return finding;
  }
  finding.severity = Severity::kWarning;
  finding.what = clock->synchronised ? fmt::format("synchronised, but only within {}", error)
                                     : "this machine's clock is not synchronised";
  finding.fix = "run chronyd (on EC2 with `server 169.254.169.123 prefer iburst`)";
  return finding;
}

// Lists the other sources of time on this machine. Each only narrows likely bounds, so none is
// required.
Finding CheckReferences(HostView& host) {
  std::vector<std::string> there;
  if (host.Examine("/dev/vmclock0")) there.push_back("vmclock");
  for (const std::string& device : host.List("/dev")) {
    if (device.starts_with("ptp")) there.push_back("/dev/" + device);
  }
  if (host.Examine("/run/chrony/chronyd.sock")) there.push_back("chronyd");
  if (host.Examine("/var/run/clockbound/shm0")) there.push_back("ClockBound");
  Finding finding{.check = "time sources"};
  if (there.empty()) {
    finding.severity = Severity::kNote;
    finding.what = "none of vmclock, PHC, chronyd, ClockBound: clock bounds depend on probes alone";
    return finding;
  }
  for (const std::string& source : there) {
    finding.what += (finding.what.empty() ? "" : ", ") + source;
  }
  return finding;
}

}  // namespace

std::vector<Finding> CheckClocks(HostView& host) {
  return {CheckClockSource(host), CheckDiscipline(host), CheckReferences(host)};
}

std::vector<Finding> CheckLimits(HostView& host) {
  Finding files{.check = "open files"};
  const ResourceLimit open_files = host.open_files_limit();
  files.what = open_files ? fmt::format("{} for a process", FormatCount(*open_files)) : "no limit";
  if (open_files && *open_files < kOpenFilesMin) {
    files.severity = Severity::kWarning;
    files.what +=
        ": an agent needs two per worker; an aggregator needs some per agent and for its store";
    files.fix = "LimitNOFILE=65536 in the service, or ulimit -n 65536";
  }
  Finding memory{.check = "locked memory"};
  const ResourceLimit locked = host.locked_bytes_limit();
  memory.what = locked ? FormatBytes(*locked) + " for a process" : "no limit";
  if (locked && *locked < kLockedBytesMin) {
    memory.severity = Severity::kWarning;
    memory.what += ": the Neuron driver and EFA pin memory of workers";
    memory.fix = "ulimit -l unlimited, or LimitMEMLOCK=infinity";
  }
  return {files, memory};
}

bool HasNeuronDevices(HostView& host) {
  const std::vector<std::string> devices = host.List("/dev");
  // The driver's devices are /dev/neuron0 and following; other names that start so are not devices.
  return std::any_of(devices.begin(), devices.end(), [](const std::string& device) {
    return device.starts_with("neuron") && device.size() > 6 && device[6] >= '0' &&
           device[6] <= '9';
  });
}

}  // namespace neurontrace::cli
