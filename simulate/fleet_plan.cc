// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <system_error>

namespace neurontrace {
namespace {

constexpr VerdictKind kKinds[] = {
    VerdictKind::kSlowCore,       VerdictKind::kSlowHost,    VerdictKind::kSlowProcess,
    VerdictKind::kInputStall,     VerdictKind::kMemoryStall, VerdictKind::kHostCode,
    VerdictKind::kSlowCollective, VerdictKind::kUnevenRole,  VerdictKind::kUnevenData,
    VerdictKind::kHangNotEntered, VerdictKind::kHangInside,  VerdictKind::kDeadWorker,
    VerdictKind::kDeviceError};
constexpr HoleKind kHoleKinds[] = {HoleKind::kLosses, HoleKind::kUnknownLosses, HoleKind::kMissing,
                                   HoleKind::kLateAgent, HoleKind::kWrongIds};

std::string VerdictKindNames() {
  std::string names;
  for (const VerdictKind kind : kKinds) {
    if (!names.empty()) names += ", ";
    names += VerdictKindName(kind);
  }
  return names;
}

absl::Status OutOfRange(std::string_view what, double value, double low, double high) {
  return absl::InvalidArgumentError(
      fmt::format("{} is {}; it must be from {} to {}", what, value, low, high));
}

absl::Status CheckRange(std::string_view what, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return OutOfRange(what, value, low, high);
}

absl::Status CheckSteps(double begin, double end) {
  if (begin >= 0 && begin < end && end <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the steps {}-{} percent are no range within 0-100", begin * 100, end * 100));
}

absl::Status CheckFaults(const FleetPlan& plan) {
  for (const PlannedFault& fault : plan.faults) {
    const uint32_t targets = FaultTargets(plan, fault.kind);
    if (fault.target >= targets) {
      return OutOfRange(fmt::format("the target of {}", VerdictKindName(fault.kind)), fault.target,
                        0, targets - 1.0);
    }
    const bool meets =
        fault.kind == VerdictKind::kSlowCollective || fault.kind == VerdictKind::kHangInside;
    if (meets && plan.dp < 2) {
      return absl::InvalidArgumentError(fmt::format(
          "{} needs data-parallel groups: --dp of 2 or more", VerdictKindName(fault.kind)));
    }
    if (auto status =
            CheckRange("the magnitude of a fault in percent", fault.magnitude * 100, 0, 10'000);
        !status.ok())
      return status;
    if (auto status = CheckSteps(fault.begin, fault.end); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckHolesAndClocks(const FleetPlan& plan) {
  for (const PlannedHole& hole : plan.holes) {
    if (hole.ranks.empty() || hole.ranks.back() >= plan.ranks()) {
      return absl::InvalidArgumentError(fmt::format("the ranks of {} must be from 0 to {}",
                                                    HoleKindName(hole.kind), plan.ranks() - 1));
    }
    if (auto status = CheckSteps(hole.begin, hole.end); !status.ok()) return status;
  }
  for (const PlannedClock& clock : plan.clocks) {
    if (clock.instance >= plan.instances())
      return OutOfRange("the instance of a clock", clock.instance, 0, plan.instances() - 1.0);
    if (std::abs(clock.drift_ppm) > 10'000)
      return OutOfRange("a clock's drift in ppm", clock.drift_ppm, -10'000, 10'000);
    if (auto status =
            CheckRange("the time of a clock's step in percent", clock.step_at * 100, 0, 100);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// Reads the whole text as a number, or returns false.
template <typename Number>
bool ParseNumber(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end && std::isfinite(static_cast<double>(value));
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

// Splits "A+B" into A and the percentages of B, "BEGIN-END". Returns nullopt if B is no range.
std::optional<std::string_view> SplitSteps(std::string_view text, double& begin, double& end) {
  const size_t plus = text.find('+');
  if (plus == std::string_view::npos) return text;
  const std::vector<std::string_view> ends = Split(text.substr(plus + 1), '-');
  if (ends.size() != 2 || !ParseNumber(ends[0], begin) || !ParseNumber(ends[1], end))
    return std::nullopt;
  begin /= 100;
  end /= 100;
  return text.substr(0, plus);
}

}  // namespace

bool StopsFleet(VerdictKind kind) {
  return kind == VerdictKind::kHangNotEntered || kind == VerdictKind::kHangInside ||
         kind == VerdictKind::kDeadWorker || kind == VerdictKind::kDeviceError;
}

const char* HoleKindName(HoleKind kind) {
  switch (kind) {
    case HoleKind::kLosses:
      return "losses";
    case HoleKind::kUnknownLosses:
      return "unknown-losses";
    case HoleKind::kMissing:
      return "missing";
    case HoleKind::kLateAgent:
      return "late-agent";
    case HoleKind::kWrongIds:
      return "wrong-ids";
  }
  return "";
}

uint32_t FaultTargets(const FleetPlan& plan, VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSlowHost:
      return plan.instances();
    case VerdictKind::kSlowProcess:
    case VerdictKind::kDeadWorker:
      return plan.processes();
    case VerdictKind::kUnevenRole:
      return plan.pp;
    case VerdictKind::kSlowCollective:
    case VerdictKind::kHangInside:
      return plan.pp * plan.tp;
    case VerdictKind::kUnevenData:
      return 1;
    default:
      return plan.ranks();
  }
}

absl::Status CheckFleetPlan(const FleetPlan& plan) {
  const double ranks = 1.0 * plan.dp * plan.pp * plan.tp;
  const absl::Status checks[] = {
      CheckRange("--dp", plan.dp, 1, FleetPlan::kRanksMax),
      CheckRange("--pp", plan.pp, 1, FleetPlan::kRanksMax),
      CheckRange("--tp", plan.tp, 1, FleetPlan::kRanksMax),
      CheckRange("dp * pp * tp", ranks, 2, FleetPlan::kRanksMax),
      CheckRange("--cores-per-process", plan.cores_per_process, 1, 128),
      CheckRange("--processes-per-instance", plan.processes_per_instance, 1, 128),
      CheckRange("--steps", plan.steps, 1, FleetPlan::kStepsMax),
      CheckRange("--microbatches", plan.microbatches, 1, FleetPlan::kMicrobatchesMax),
      CheckRange("the step in ms", static_cast<double>(plan.step_ns) / 1e6, 1, 600'000),
      CheckRange("the noise", plan.noise_low, 0, 0.3),
      CheckRange("the noise", plan.noise_high, plan.noise_low, 0.3),
      CheckRange("the chance of a hiccup", plan.hiccup_chance, 0, 1),
      CheckRange("the spread of data", plan.data_spread, 0, 2),
      CheckRange("the offset of clocks in s", static_cast<double>(plan.clock_offset_max_ns) / 1e9,
                 0, 3600),
      CheckRange("the drift of clocks in ppm", plan.clock_drift_max_ppm, 0, 1000),
      CheckRange("the length of a hang in s", static_cast<double>(plan.hang_ns) / 1e9, 0, 86'400),
  };
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  if (!plan.stage_weights.empty() && plan.stage_weights.size() != plan.pp) {
    return absl::InvalidArgumentError(
        fmt::format("--stage-weights has {} values; it needs one for each of {} stages",
                    plan.stage_weights.size(), plan.pp));
  }
  for (const double weight : plan.stage_weights) {
    if (auto status = CheckRange("a stage's weight", weight, 0.01, 100); !status.ok())
      return status;
  }
  if (auto status = CheckFaults(plan); !status.ok()) return status;
  return CheckHolesAndClocks(plan);
}

std::vector<uint32_t> GuiltyRanks(const FleetPlan& plan, const PlannedFault& fault) {
  std::vector<uint32_t> ranks;
  const auto add_range = [&](uint32_t begin, uint32_t count) {
    const uint32_t end = std::min(begin + count, plan.ranks());
    for (uint32_t rank = begin; rank < end; ++rank) ranks.push_back(rank);
  };
  switch (fault.kind) {
    case VerdictKind::kSlowHost:
      add_range(fault.target * plan.cores_per_instance(), plan.cores_per_instance());
      break;
    case VerdictKind::kSlowProcess:
    case VerdictKind::kDeadWorker:
      add_range(fault.target * plan.cores_per_process, plan.cores_per_process);
      break;
    case VerdictKind::kUnevenRole:
      for (uint32_t replica = 0; replica < plan.dp; ++replica)
        add_range((replica * plan.pp + fault.target) * plan.tp, plan.tp);
      break;
    case VerdictKind::kSlowCollective:
    case VerdictKind::kHangInside:
      for (uint32_t replica = 0; replica < plan.dp; ++replica)
        ranks.push_back(replica * plan.pp * plan.tp + fault.target);
      break;
    case VerdictKind::kUnevenData:
      break;
    default:
      ranks.push_back(fault.target);
  }
  return ranks;
}

std::string_view GuiltyPhase(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSlowCore:
    case VerdictKind::kUnevenRole:
      return "device";
    case VerdictKind::kInputStall:
    case VerdictKind::kMemoryStall:
    case VerdictKind::kHostCode:
      return "gap";
    case VerdictKind::kSlowCollective:
      return "transfer";
    default:  // several host phases, or none
      return "";
  }
}

uint64_t TensorGroup(const FleetPlan& plan, uint32_t rank) { return 1 + rank / plan.tp; }
uint64_t DataGroup(const FleetPlan& plan, uint32_t stage, uint32_t tensor_rank) {
  return 1 + uint64_t{plan.dp} * plan.pp + stage * plan.tp + tensor_rank;
}
uint64_t PipelineGroup(const FleetPlan& plan, uint32_t earlier_rank) {
  return 1 + uint64_t{plan.dp} * plan.pp + uint64_t{plan.pp} * plan.tp + earlier_rank;
}

absl::StatusOr<PlannedFault> ParsePlannedFault(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(fmt::format(
      "'{}' is no fault; write KIND@TARGET:PERCENT+BEGIN-END, such as slow-core@417:50+25-100, "
      "where KIND is one of {}",
      text, VerdictKindNames()));
  PlannedFault fault;
  const auto rest = SplitSteps(text, fault.begin, fault.end);
  if (!rest) return wrong;
  const std::string_view name = rest->substr(0, rest->find('@'));
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](VerdictKind known) {
    return name == VerdictKindName(known);
  });
  if (kind == std::end(kKinds)) return wrong;
  fault.kind = *kind;
  if (name.size() == rest->size())  // no target: the first one
    return fault;
  const std::string_view target = rest->substr(name.size() + 1);
  const size_t colon = target.find(':');
  if (!ParseNumber(target.substr(0, colon), fault.target)) return wrong;
  if (colon != std::string_view::npos) {
    if (!ParseNumber(target.substr(colon + 1), fault.magnitude)) return wrong;
    fault.magnitude /= 100;
  }
  return fault;
}

absl::StatusOr<PlannedHole> ParsePlannedHole(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(fmt::format(
      "'{}' is no hole; write KIND@FIRST-LAST+BEGIN-END, such as losses@32-63+50-60, where KIND is "
      "losses, unknown-losses, missing, late-agent or wrong-ids",
      text));
  PlannedHole hole;
  const auto rest = SplitSteps(text, hole.begin, hole.end);
  if (!rest) return wrong;
  const std::vector<std::string_view> parts = Split(*rest, '@');
  if (parts.size() != 2) return wrong;
  const auto* kind = std::find_if(std::begin(kHoleKinds), std::end(kHoleKinds),
                                  [&](HoleKind known) { return parts[0] == HoleKindName(known); });
  if (kind == std::end(kHoleKinds)) return wrong;
  hole.kind = *kind;
  const std::vector<std::string_view> ends = Split(parts[1], '-');
  uint32_t first = 0;
  uint32_t last = 0;
  if (ends.size() > 2 || !ParseNumber(ends.front(), first) || !ParseNumber(ends.back(), last))
    return wrong;
  if (first > last || last >= FleetPlan::kRanksMax) return wrong;
  hole.ranks.resize(last - first + 1);
  std::iota(hole.ranks.begin(), hole.ranks.end(), first);
  return hole;
}

absl::StatusOr<PlannedClock> ParsePlannedClock(std::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      fmt::format("'{}' is no clock; write INSTANCE:OFFSET_US,DRIFT_PPM or with ,STEP_US@PERCENT "
                  "behind, such as 3:250,15,-40000@50",
                  text));
  PlannedClock clock;
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() != 2 || !ParseNumber(parts[0], clock.instance)) return wrong;
  const std::vector<std::string_view> values = Split(parts[1], ',');
  double offset_us = 0;
  if (values.size() < 2 || values.size() > 3 || !ParseNumber(values[0], offset_us) ||
      !ParseNumber(values[1], clock.drift_ppm) || std::abs(offset_us) > 3.6e9)
    return wrong;
  clock.offset_ns = static_cast<int64_t>(offset_us * 1e3);
  if (values.size() < 3) return clock;
  const std::vector<std::string_view> step = Split(values[2], '@');
  double step_us = 0;
  if (step.size() != 2 || !ParseNumber(step[0], step_us) || !ParseNumber(step[1], clock.step_at) ||
      std::abs(step_us) > 3.6e9)
    return wrong;
  clock.step_ns = static_cast<int64_t>(step_us * 1e3);
  clock.step_at /= 100;
  return clock;
}

}  // namespace neurontrace
