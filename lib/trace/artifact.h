// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/ids.h"

// Files that the Neuron runtime's own profiler writes to its output directory
// (NEURON_RT_INSPECT_OUTPUT_DIR), and stacks of processes: captures keep them byte for byte.
// docs/operator/artifacts.md describes the whole way. Pure functions and plain values.
namespace neurontrace {

// Values are on the wire and in stores: never change one.
enum class ArtifactKind : uint8_t {
  kUnspecified = 0,
  kNeff = 1,         // *.neff: a compiled model
  kNtff = 2,         // *.ntff: a device profile
  kSystemTrace = 3,  // ntrace.pb
  kTraceInfo = 4,    // trace_info.pb
  kCpuUtil = 5,      // cpu_util.pb
  kHostMemory = 6,   // host_mem.pb
  // Not of the vendor's profiler, but of the agent and the aggregator themselves.
  kStacks = 7,        // stacks.json: what py-spy printed of one process
  kMergedStacks = 8,  // merged.json: the stacks of many, as v1.StacksReport
};
inline constexpr ArtifactKind kArtifactKindMax = ArtifactKind::kMergedStacks;
// Returns whether files of this kind are made by neurontrace, so that none is taken from an inspect
// directory.
inline bool IsOfStacks(ArtifactKind kind) {
  return kind == ArtifactKind::kStacks || kind == ArtifactKind::kMergedStacks;
}
// Returns "neff", "ntff", "ntrace", …; "unknown" for kUnspecified.
std::string_view ToString(ArtifactKind kind);

// Where a file is in the vendor's layout:
//
//   <instance>_pid_<pid>[_<container>]/[<timestamp>/]<file>
//   neffs/<file>.neff
//
// and, beside it, of neurontrace:
//
//   <instance>_pid_<pid>/<timestamp>/stacks.json
//   stacks/<timestamp>/merged.json
//
// Every part is a plain name: of 1 to 255 letters, digits and . _ - + = @ , : without a dot at the
// beginning. So a place is a relative path that leads nowhere else.
struct ArtifactPlace {
  std::string directory;
  std::string session;  // decimal digits, nanoseconds since the epoch; empty: there is none
  std::string name;

  // Derived from the names above.
  ArtifactKind kind = ArtifactKind::kUnspecified;
  std::string instance_id;  // empty in neffs/
  uint32_t pid = 0;         // in the pid namespace of its process; 0 in neffs/
  std::string container;    // empty where there is none

  // Returns the relative path in the vendor's layout.
  std::string path() const;
  friend bool operator==(const ArtifactPlace&, const ArtifactPlace&) = default;
};

// Checks and parses a place. Fails with INVALID_ARGUMENT, quoting the part that is wrong, if the
// names do not fit the layout. Accepts text from outside.
absl::StatusOr<ArtifactPlace> MakeArtifactPlace(std::string_view directory,
                                                std::string_view session, std::string_view name);
// Returns whether the layout allows this name for a directory, whatever it contains.
bool IsInspectDirectory(std::string_view name);
// Returns whether the layout allows this name for a session: 10 to 20 decimal digits.
bool IsInspectSession(std::string_view name);

// Returns the identity of an inspect directory within its host: the first 12 hexadecimal digits of
// the SHA-256 of its path. Jobs of one host can have the same places in directories of their own.
std::string ArtifactRootOf(std::string_view inspect_directory);
// Returns whether `text` has the form that ArtifactRootOf returns.
bool IsArtifactRoot(std::string_view text);

// One file of one capture: which content was where. The content itself is stored once, however many
// captures and workers refer to it.
struct ArtifactReference {
  CaptureId capture_id;
  std::string agent_id;
  std::string root;  // ArtifactRootOf its inspect directory; empty: unknown
  ArtifactPlace place;
  std::string sha256;  // of the content, 32 bytes
  uint64_t bytes = 0;
  uint64_t modified_realtime_ns = 0;  // of the file, by its host
  friend bool operator==(const ArtifactReference&, const ArtifactReference&) = default;
};

// One file that a capture should have and does not: refused, or not uploaded in time.
struct ArtifactForgone {
  CaptureId capture_id;
  std::string agent_id;
  std::string root;  // as in ArtifactReference
  ArtifactPlace place;
  uint64_t bytes = 0;
  std::string reason;  // clean text of at most limits::kArtifactReasonBytesMax
  friend bool operator==(const ArtifactForgone&, const ArtifactForgone&) = default;
};

}  // namespace neurontrace
