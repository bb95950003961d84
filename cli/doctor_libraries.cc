// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_libraries.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/elf_file.h"

namespace neurontrace::cli {
namespace {

// The lowest version that the tap supports, wherever it is built (tap/old_glibc.h).
constexpr int kGlibcMinorMin = 17;

// The functions without which the tap cannot record. The tap finds them with dlsym and reports
// `runtime too old` if one is missing.
constexpr const char* kFunctionsNeeded[] = {
    "nrt_init",
    "nrt_close",
    "nrt_sys_trace_config_allocate",
    "nrt_sys_trace_config_free",
    "nrt_sys_trace_start",
    "nrt_sys_trace_stop",
    "nrt_sys_trace_fetch_events",
    "nrt_sys_trace_buffer_free",
};

// Compares the version in the tap's own constant with this program's.
Finding CheckTapVersion(HostView& host, const std::string& path, const std::string& version) {
  Finding finding{.check = "tap version"};
  const auto found = ReadElfText(host, path, "neurontrace_tap_version");
  if (found.ok() && *found == version) {
    finding.what = version + ", as this command";
    return finding;
  }
  finding.severity = Severity::kWarning;
  finding.what = found.ok() ? fmt::format("{}, but this command is {}", *found, version)
                            : "an older version that does not report itself";
  finding.fix = "install the tap and programs of the same release, and restart the workers";
  return finding;
}

// Compares this machine's glibc with the newest symbol version that the tap needs. A container has
// its own C library, so the result is about the host only.
Finding CheckTapGlibc(HostView& host, const ElfFile& elf) {
  Finding finding{.check = "glibc"};
  const std::string here = host.glibc();
  // A build may need a newer C library than the sources do.
  const int needed = std::max(elf.HighestGlibcMinor(), kGlibcMinorMin);
  if (here.empty()) {
    finding.severity = Severity::kBroken;
    finding.what = "this machine's C library is not glibc, and the tap needs it";
    finding.fix = "run workers in an image of a distribution with glibc 2.17 or later";
  } else if (MinorOfGlibc(here) < needed) {
    finding.severity = Severity::kBroken;
    finding.what = fmt::format("this machine has {}, but the tap needs 2.{}", here, needed);
    finding.fix = "run workers on a newer distribution, or build the tap on this one";
  } else {
    finding.what =
        fmt::format("{} here, the tap needs 2.{}; a container has its own", here, needed);
  }
  return finding;
}

}  // namespace

std::vector<Finding> CheckTap(HostView& host, const std::string& path, const std::string& version) {
  Finding finding{.check = "tap library", .severity = Severity::kBroken};
  if (path.empty()) {
    finding.what = "libneurontrace_tap.so is neither beside the programs nor in their ../lib";
    finding.fix = "install it, or pass it with --tap FILE";
    return {finding};
  }
  const auto elf = ReadElf(host, path);
  if (!elf.ok()) {
    finding.what = std::string(elf.status().message());
    finding.fix = "reinstall the tap, or name it with --tap FILE";
    return {finding};
  }
  if (!elf->IsOfThisMachine()) {
    finding.what = fmt::format("{} is built for a different processor architecture", path);
    finding.fix = "install the tap that is built for this processor architecture";
    return {finding};
  }
  // Both functions must be defined, because the tap works by interposing them.
  if (!elf->Defines("nrt_init") || !elf->Defines("nrt_close")) {
    finding.what = fmt::format("{} does not intercept nrt_init, so it is not the tap", path);
    finding.fix = "reinstall the tap, or name it with --tap FILE";
    return {finding};
  }
  finding.severity = Severity::kGood;
  finding.what = fmt::format("{}: workers need LD_PRELOAD={}", path, path);
  return {finding, CheckTapVersion(host, path, version), CheckTapGlibc(host, *elf)};
}

// Each element of the path is a directory; empty ones are skipped.
std::vector<std::string> RuntimePlaces(const std::string& library_path) {
  std::vector<std::string> directories;
  for (size_t from = 0; from < library_path.size();) {
    const size_t end = std::min(library_path.find(':', from), library_path.size());
    if (end > from) directories.push_back(library_path.substr(from, end - from));
    from = end + 1;
  }
  for (const char* usual :
       {"/opt/aws/neuron/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/usr/local/lib", "/usr/lib64", "/usr/lib"}) {
    directories.push_back(usual);
  }
  for (std::string& directory : directories) directory += "/libnrt.so.1";
  return directories;
}

Finding CheckRuntime(HostView& host, const std::vector<std::string>& places, bool is_expected) {
  Finding finding{.check = "libnrt.so.1"};
  const auto place = std::find_if(places.begin(), places.end(),
                                  [&host](const std::string& path) { return host.Examine(path); });
  if (place == places.end()) {
    finding.severity = is_expected ? Severity::kWarning : Severity::kNote;
    finding.what = is_expected
                       ? "this machine has Neuron devices, but no libnrt.so.1 in the usual places"
                       : "not on this machine, which has no Neuron device";
    if (is_expected) {
      finding.fix =
          "install aws-neuronx-runtime-lib, or add its directory to LD_LIBRARY_PATH; workers in "
          "containers bring their own";
    }
    return finding;
  }
  const auto elf = ReadElf(host, *place);
  if (!elf.ok()) {
    finding.severity = Severity::kBroken;
    finding.what = std::string(elf.status().message());
    finding.fix = "reinstall aws-neuronx-runtime-lib";
    return finding;
  }
  // The real file is named after the runtime's version.
  const std::string real = host.RealPath(*place);
  const std::string name =
      real.empty() || real == *place ? *place : fmt::format("{} ({})", *place, real);
  std::string missing;
  for (const char* const function : kFunctionsNeeded) {
    if (!elf->Defines(function))
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", function);
  }
  if (missing.empty()) {
    finding.what = name + " has every function that the tap calls";
    return finding;
  }
  finding.severity = Severity::kBroken;
  finding.what =
      fmt::format("{} lacks {}: workers are reported as `runtime too old`", name, missing);
  finding.fix = "use a Neuron SDK whose runtime has the nrt_sys_trace functions (2.22 or later)";
  return finding;
}

}  // namespace neurontrace::cli
