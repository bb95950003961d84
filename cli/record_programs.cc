// SPDX-License-Identifier: Apache-2.0
#include "cli/record_programs.h"

#include <unistd.h>

#include <climits>
#include <vector>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

constexpr char kTapName[] = "libneurontrace_tap.so";
constexpr char kAnnotateName[] = "libneurontrace_annotate.so";

// Returns the possible files of the tap in the order in which they are tried: that of the user
// only, or the places in which packages and builds install it.
std::vector<std::string> TapCandidates(const ProgramPlaces& places) {
  if (!places.tap.empty()) return {places.tap};
  std::vector<std::string> candidates;
  for (const std::string& directory : {places.programs, places.own_directory}) {
    if (directory.empty()) continue;
    for (const char* place : {"/", "/../lib/", "/../lib/neurontrace/", "/../lib64/"}) {
      candidates.push_back(directory + place + kTapName);
    }
  }
  return candidates;
}

}  // namespace

std::string OwnDirectory() {
  char path[PATH_MAX];
  // The link is resolved by the kernel, so that a symbolic link to the program does not matter.
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  const std::string own(path, n > 0 ? static_cast<size_t>(n) : 0);
  const size_t slash = own.rfind('/');
  return slash == std::string::npos ? "." : own.substr(0, slash);
}

std::string FindTap(const ProgramPlaces& places,
                    const std::function<bool(const std::string&)>& is_there) {
  for (const std::string& candidate : TapCandidates(places)) {
    if (is_there(candidate)) return candidate;
  }
  return "";
}

std::string FindAnnotationLibrary(const std::string& tap,
                                  const std::function<bool(const std::string&)>& is_there) {
  // Without a slash npos + 1 is 0.
  const std::string library = tap.substr(0, tap.rfind('/') + 1) + kAnnotateName;
  return is_there(library) ? library : "";
}

absl::StatusOr<RecordPrograms> FindRecordPrograms(
    const ProgramPlaces& places, const std::function<bool(const std::string&)>& is_there) {
  const std::string directory = places.programs.empty() ? places.own_directory : places.programs;
  // The daemons are beside each other; only the tap may be in a library directory.
  RecordPrograms found{.agent = directory + "/neurontrace-agent",
                       .aggregator = directory + "/neurontrace-aggregator",
                       .tap = FindTap(places, is_there)};
  for (const std::string& program : {found.agent, found.aggregator}) {
    if (is_there(program)) continue;
    return NotFound(
        "there is no {}; set the directory of neurontrace-agent and neurontrace-aggregator with "
        "--programs DIR or NEURONTRACE_PROGRAMS",
        program);
  }
  if (found.tap.empty()) {
    return NotFound("there is no {}; set the tap library with --tap FILE or NEURONTRACE_TAP",
                    places.tap.empty()
                        ? fmt::format("{} beside {} or in its ../lib", kTapName, directory)
                        : places.tap);
  }
  return found;
}

absl::StatusOr<std::string> FindAggregator(
    const ProgramPlaces& places, const std::function<bool(const std::string&)>& is_there) {
  const std::string directory = places.programs.empty() ? places.own_directory : places.programs;
  std::string program = directory + "/neurontrace-aggregator";
  if (is_there(program)) return program;
  return NotFound(
      "there is no {}; install the package neurontrace-aggregator, or set the program's directory "
      "with --programs DIR or NEURONTRACE_PROGRAMS",
      program);
}

}  // namespace neurontrace::cli
