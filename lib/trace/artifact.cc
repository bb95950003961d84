// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/artifact.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

// Parts of the vendor's layout (lib/trace/artifact.h): the directory of the models that processes
// share, and the mark between instance and process id.
constexpr std::string_view kSharedNeffs = "neffs";
// The directory of merged stacks.
constexpr std::string_view kMergedDirectory = "stacks";
constexpr std::string_view kPidMark = "_pid_";
// Hexadecimal digits of an artifact root.
constexpr size_t kRootDigits = 12;
// Nanoseconds since the epoch have 19 digits now.
constexpr size_t kSessionDigitsMin = 10;
constexpr size_t kSessionDigitsMax = 20;
// Bytes of a refused name that a message quotes.
constexpr size_t kQuotedBytesMax = 80;

// Files that have the same name in every directory.
constexpr std::array<std::pair<std::string_view, ArtifactKind>, 6> kFixedNames = {{
    {"ntrace.pb", ArtifactKind::kSystemTrace},
    {"trace_info.pb", ArtifactKind::kTraceInfo},
    {"cpu_util.pb", ArtifactKind::kCpuUtil},
    {"host_mem.pb", ArtifactKind::kHostMemory},
    {"stacks.json", ArtifactKind::kStacks},
    {"merged.json", ArtifactKind::kMergedStacks},
}};

// Returns whether a name may contain the character: no slash, blank, control character or byte of a
// multi-byte character.
bool IsPlainCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-+=@,:").find(c) != std::string_view::npos;
}

// Returns whether a name can become part of a path as it is. The first character excludes "." and
// "..", and files that are hidden.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= limits::kArtifactNameBytesMax && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), IsPlainCharacter);
}

bool IsDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the kind of a file by its name, or kUnspecified if the layout has no such name. An ending
// with nothing before it is not a name.
ArtifactKind KindOf(std::string_view name) {
  for (const auto& [fixed, kind] : kFixedNames) {
    if (name == fixed) return kind;
  }
  const auto is_a = [name](std::string_view end) {
    return name.size() > end.size() && name.ends_with(end);
  };
  if (is_a(".neff")) return ArtifactKind::kNeff;
  if (is_a(".ntff")) return ArtifactKind::kNtff;
  return ArtifactKind::kUnspecified;
}

// Parses "<instance>_pid_<pid>[_<container>]" of a plain name. An instance id does not contain
// "_pid_", so the first one counts. Returns false, with `place` half written, for any other name.
bool ParseDirectory(std::string_view name, ArtifactPlace& place) {
  const size_t mark = name.find(kPidMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  place.instance_id = name.substr(0, mark);
  const std::string_view rest = name.substr(mark + kPidMark.size());
  const std::string_view digits = rest.substr(0, rest.find('_'));
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, place.pid);
  // No leading zeros: one process must have one spelling only, as places are compared as text.
  const bool is_pid = error == std::errc() && stop == end && place.pid > 0 && digits[0] != '0';
  if (!is_pid) return false;
  if (digits.size() == rest.size()) return true;
  place.container = rest.substr(digits.size() + 1);
  return !place.container.empty();
}

}  // namespace

std::string_view ToString(ArtifactKind kind) {
  switch (kind) {
    case ArtifactKind::kNeff:
      return "neff";
    case ArtifactKind::kNtff:
      return "ntff";
    case ArtifactKind::kSystemTrace:
      return "ntrace";
    case ArtifactKind::kTraceInfo:
      return "trace_info";
    case ArtifactKind::kCpuUtil:
      return "cpu_util";
    case ArtifactKind::kHostMemory:
      return "host_mem";
    case ArtifactKind::kStacks:
      return "stacks";
    case ArtifactKind::kMergedStacks:
      return "merged_stacks";
    case ArtifactKind::kUnspecified:
      break;
  }
  return "unknown";
}

std::string ArtifactPlace::path() const {
  return session.empty() ? directory + "/" + name : directory + "/" + session + "/" + name;
}

bool IsInspectDirectory(std::string_view name) {
  ArtifactPlace place;
  return IsPlainName(name) && (name == kSharedNeffs || ParseDirectory(name, place));
}

bool IsInspectSession(std::string_view name) {
  return name.size() >= kSessionDigitsMin && name.size() <= kSessionDigitsMax && IsDigits(name);
}

std::string ArtifactRootOf(std::string_view inspect_directory) {
  // 48 bits: enough that the few directories of one host do not collide, and short enough for a
  // key.
  return Sha256HexOf(inspect_directory).substr(0, kRootDigits);
}

bool IsArtifactRoot(std::string_view text) {
  return text.size() == kRootDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The names come from a directory that any process of the host may write to, and become part of
// paths in exports. The checks therefore accept only the vendor's layout instead of rejecting known
// attacks.
absl::StatusOr<ArtifactPlace> MakeArtifactPlace(std::string_view directory,
                                                std::string_view session, std::string_view name) {
  ArtifactPlace place;
  const bool is_shared = directory == kSharedNeffs;
  const bool is_merged = directory == kMergedDirectory;
  if (!IsPlainName(directory) || (!is_shared && !is_merged && !ParseDirectory(directory, place))) {
    return InvalidArgument("artifact: '{}' is not an inspect directory",
                           CleanText(directory, kQuotedBytesMax));
  }
  if (!session.empty() && (is_shared || !IsInspectSession(session))) {
    return InvalidArgument("artifact: '{}' is not the time of a session",
                           CleanText(session, kQuotedBytesMax));
  }
  place.kind = IsPlainName(name) ? KindOf(name) : ArtifactKind::kUnspecified;
  // Stacks have the time at which they were taken.
  if (place.kind == ArtifactKind::kUnspecified ||
      (is_shared && place.kind != ArtifactKind::kNeff) ||
      is_merged != (place.kind == ArtifactKind::kMergedStacks) ||
      (IsOfStacks(place.kind) && session.empty())) {
    return InvalidArgument("artifact: '{}' is not an artifact's file name",
                           CleanText(name, kQuotedBytesMax));
  }
  place.directory = directory;
  place.session = session;
  place.name = name;
  return place;
}

}  // namespace neurontrace
