// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/grouping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

using Part = Grouping::Part;

// A part with the option that names it, and the groups in which the vendor allows it.
struct PartName {
  std::string_view name;
  Part part;
  bool in_primary;
  bool in_secondary;
};
// The vendor's names. A rank belongs to a core rather than to a process, so it groups rows only.
constexpr std::array kParts = {
    PartName{"instance_id", Part::kInstanceId, true, true},
    PartName{"process_id", Part::kProcessId, true, true},
    PartName{"worker_gid", Part::kWorkerGid, false, true},
    PartName{"lnc_idx", Part::kLncIdx, true, true},
    PartName{"thread_id", Part::kThreadId, true, true},
};

// Returns the parts in the order of their first mention. Fails with INVALID_ARGUMENT for an unknown
// name, and for one that this kind of group does not allow.
absl::StatusOr<std::vector<Part>> ParseParts(const std::vector<std::string>& names, bool primary) {
  std::vector<Part> parts;
  for (const std::string& name : names) {
    const auto known = std::find_if(kParts.begin(), kParts.end(), [&](const PartName& part) {
      return part.name == name && (primary ? part.in_primary : part.in_secondary);
    });
    if (known == kParts.end()) {
      std::vector<std::string_view> allowed;
      for (const PartName& part : kParts) {
        if (primary ? part.in_primary : part.in_secondary) allowed.push_back(part.name);
      }
      return InvalidArgument("{} group: unknown key '{}'; the keys are {}",
                             primary ? "primary" : "secondary", name, fmt::join(allowed, ", "));
    }
    // A part that is named twice would only repeat its text in labels.
    if (std::find(parts.begin(), parts.end(), known->part) == parts.end()) {
      parts.push_back(known->part);
    }
  }
  return parts;
}

}  // namespace

absl::StatusOr<Grouping> Grouping::Parse(const std::vector<std::string>& primary,
                                         const std::vector<std::string>& secondary) {
  Grouping grouping;
  ASSIGN_OR_RETURN(grouping.primary_, ParseParts(primary, true));
  ASSIGN_OR_RETURN(grouping.secondary_, ParseParts(secondary, false));
  if (grouping.primary_.empty()) grouping.primary_ = {Part::kInstanceId, Part::kProcessId};
  if (grouping.secondary_.empty()) {
    grouping.secondary_ = {Part::kWorkerGid, Part::kLncIdx, Part::kThreadId};
  }
  return grouping;
}

bool Grouping::Has(const std::vector<Part>& parts, Part part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

// The prefixes "pid", "nc" and "tid" are the vendor's, and keep equal numbers of different kinds
// apart. The label of a rank has its own prefix.
std::string Grouping::Text(Part part, const TimelineStream& stream, uint64_t thread_id) {
  const StreamIdentity& identity = stream.description.identity;
  switch (part) {
    case Part::kInstanceId:
      return identity.worker.instance_id;
    case Part::kProcessId:
      return fmt::format("pid{}", identity.worker.pid);
    case Part::kWorkerGid:
      return stream.rank.label;
    case Part::kLncIdx:
      return identity.has_core() ? fmt::format("nc{}", identity.nc_idx) : "";
    case Part::kThreadId:
      return fmt::format("tid{}", thread_id);
  }
  return "";
}

std::string Grouping::Label(const std::vector<Part>& parts, const TimelineStream& stream,
                            uint64_t thread_id) {
  std::string label;
  for (const Part part : parts) {
    const std::string text = Text(part, stream, thread_id);
    if (text.empty()) continue;
    if (!label.empty()) label += '-';
    label += text;
  }
  return label;
}

}  // namespace neurontrace
