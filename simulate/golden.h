// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "simulate/fleet_model.h"
#include "simulate/fleet_plan.h"

namespace neurontrace {

// One planned fault and what it did.
struct GoldenFault {
  VerdictKind kind = VerdictKind::kSlowCore;
  std::vector<uint32_t>
      ranks;           // guilty and in the capture, ascending; empty: no rank is to be named
  std::string phase;   // of the excess; empty: several host phases, or none
  int64_t stage = -1;  // of kUnevenRole; -1: none
  uint64_t group = 0;  // of kSlowCollective and kHangInside; 0: none
  double magnitude = 0;
  uint64_t begin_ns = 0;  // true time
  uint64_t end_ns = 0;
  std::vector<uint32_t> victims;  // innocent ranks that waited longer because of it
  uint64_t wait_ns = 0;           // by how much longer they waited in all
  uint64_t cost_ns = 0;           // by which it made a step longer, on average; 0 of what stops
};

// Something that cannot be judged: a tool has to refuse, or say nothing, about these ranks.
struct GoldenHole {
  std::string kind;                  // HoleKindName
  std::vector<uint32_t> ranks;       // ascending
  std::vector<std::string> reasons;  // RefusalReasonName of the refusals that fit
};

// The truth about a simulated run, beside its store or its files.
struct Golden {
  static constexpr uint32_t kVersion = 1;
  static constexpr size_t kBytesMax = size_t{64} << 20;

  uint32_t dp = 0;
  uint32_t pp = 0;
  uint32_t tp = 0;
  uint32_t cores_per_process = 0;
  uint32_t processes_per_instance = 0;
  uint64_t seed = 0;
  uint32_t steps = 0;
  uint64_t begin_ns = 0;  // of the run, true time
  uint64_t end_ns = 0;
  std::vector<GoldenFault> faults;
  std::vector<GoldenHole> holes;

  uint32_t ranks() const { return dp * pp * tp; }
};

// Returns the truth of a plan, without what only a run can measure.
Golden PlannedGolden(const FleetPlan& plan);
// The same with times, victims, waits and costs: runs the plan, and once more without each of its
// faults, which takes as long as that many runs.
Golden MeasuredGolden(const FleetPlan& plan);

// Writes MeasuredGolden of a plan as a file. Fails with UNAVAILABLE and the file's name.
absl::Status WriteGolden(const std::string& path, const FleetPlan& plan);
std::string GoldenToJson(const Golden& golden);
// Fails with INVALID_ARGUMENT, naming the member, if it is no such text, or of a newer version.
absl::StatusOr<Golden> ParseGolden(std::string_view json);

}  // namespace neurontrace
