// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace neurontrace {
namespace {

std::string_view FaultWords(DeviceFault fault) {
  switch (fault) {
    case DeviceFault::kImpossible:
      return "no times at all, or ended before they began";
    case DeviceFault::kFitsNothing:
      return "executions at another time than all others say";
    case DeviceFault::kOutOfOrder:
      return "executions or sync points that are not where their numbers belong";
    case DeviceFault::kNowhere:
      return "sync points between two runs of the counter";
    case DeviceFault::kOffCurve:
      return "sync points far from all others";
    case DeviceFault::kBeyondBracket:
      return "sync points outside of what cause and effect allow";
    case DeviceFault::kAlone:
      return "sync points that their neighbours rule out";
    case DeviceFault::kContradiction:
      return "contradictions to what came before and after";
  }
  return "";
}

}  // namespace

void DeviceFaults::Add(DeviceFault fault, uint64_t x_ns, double amount_ns) {
  Entry& entry = entries_[fault];
  if (entry.count++ == 0) entry.begin_ns = entry.end_ns = x_ns;
  entry.begin_ns = std::min(entry.begin_ns, x_ns);
  entry.end_ns = std::max(entry.end_ns, x_ns);
  if (std::abs(amount_ns) > std::abs(entry.most_ns)) entry.most_ns = amount_ns;
}

void DeviceFaults::WriteTo(ClockModel& model) const {
  for (const auto& [fault, entry] : entries_) {
    model.evidence_rejected += entry.count;
    model.findings.push_back({.kind = ClockFindingKind::kRejectedEvidence,
                              .x_begin_ns = entry.begin_ns,
                              .x_end_ns = entry.end_ns,
                              .amount_ns = static_cast<int64_t>(entry.most_ns),
                              .words = fmt::format("{}: {}", FaultWords(fault), entry.count)});
  }
}

}  // namespace neurontrace
