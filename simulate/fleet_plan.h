// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// A fault that a simulated fleet has. `target` is a rank; of kSlowHost an instance, of
// kSlowProcess and kDeadWorker a process of the fleet, of kUnevenRole a pipeline stage, and of
// kSlowCollective and kHangInside the number of a data-parallel group (stage * tp + tensor rank).
// kUnevenData has none.
struct PlannedFault {
  VerdictKind kind = VerdictKind::kSlowCore;
  // The added share of the own work of an execution: 0.5 is half as much again. Of kSlowCollective
  // of the transfer; of kUnevenData the deviation of the logarithm of the sequences' lengths.
  // Ignored for hangs, ends and errors.
  double magnitude = 0.5;
  uint32_t target = 0;
  // Shares of the steps in which it holds, [begin, end). What hangs never ends.
  double begin = 0;
  double end = 1;
};

// Returns whether a fault of this kind stops the fleet.
bool StopsFleet(VerdictKind kind);

enum class HoleKind : uint8_t {
  kLosses,         // the events of these steps are lost, and counted
  kUnknownLosses,  // the same, not counted
  kMissing,        // not in the capture at all
  kLateAgent,      // nothing comes from `begin` on, and no canary
  kWrongIds,       // exec_id is one too high from `begin` on
};
// "losses", "unknown-losses", "missing", "late-agent", "wrong-ids". Static.
const char* HoleKindName(HoleKind kind);

// Something that the capture does not have of some ranks, or has wrong.
struct PlannedHole {
  HoleKind kind = HoleKind::kLosses;
  std::vector<uint32_t> ranks;  // ascending
  double begin = 0;             // shares of the steps, [begin, end)
  double end = 1;
};

// How the clock of one instance differs from the true time.
struct PlannedClock {
  uint32_t instance = 0;
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  int64_t step_ns = 0;   // by which it is set …
  double step_at = 0.5;  // … after this share of the steps
};

// What a simulated fleet is and what breaks in it. A plain value; equal plans give equal events.
struct FleetPlan {
  static constexpr uint32_t kRanksMax = 10'000;
  static constexpr uint32_t kStepsMax = 1'000'000;
  static constexpr uint32_t kMicrobatchesMax = 64;

  // Data, pipeline and tensor parallelism. Rank = (replica * pp + stage) * tp + tensor rank.
  uint32_t dp = 8;
  uint32_t pp = 2;
  uint32_t tp = 4;
  uint32_t cores_per_process = 4;
  uint32_t processes_per_instance = 8;
  uint64_t seed = 1;
  uint32_t steps = 40;
  uint32_t microbatches = 2;
  uint64_t step_ns = 500'000'000;  // about, without noise and faults
  uint64_t start_ns = 1'750'000'000'000'000'000u;
  // Relative deviation of each execution's work: drawn for each rank between the two.
  double noise_low = 0.01;
  double noise_high = 0.01;
  double hiccup_chance = 0.001;       // of an execution to take up to 30 % longer
  std::vector<double> stage_weights;  // relative device work by stage; empty: equal
  double data_spread = 0;             // as the magnitude of kUnevenData, throughout
  // Clocks are offset and drift by up to these, each instance by its own.
  uint64_t clock_offset_max_ns = 5'000'000;
  double clock_drift_max_ppm = 20;
  uint64_t hang_ns = 20'000'000'000;  // how long the capture continues after a hang
  std::vector<PlannedFault> faults;
  std::vector<PlannedHole> holes;
  std::vector<PlannedClock> clocks;  // replace the drawn ones

  uint32_t ranks() const { return dp * pp * tp; }
  uint32_t cores_per_instance() const { return cores_per_process * processes_per_instance; }
  uint32_t processes() const { return (ranks() + cores_per_process - 1) / cores_per_process; }
  uint32_t instances() const { return (ranks() + cores_per_instance() - 1) / cores_per_instance(); }
  uint32_t process_of(uint32_t rank) const { return rank / cores_per_process; }
  uint32_t instance_of(uint32_t rank) const { return rank / cores_per_instance(); }
  uint32_t core_of(uint32_t rank) const { return rank % cores_per_process; }  // in its process
  uint32_t stage_of(uint32_t rank) const { return rank / tp % pp; }
  uint32_t replica_of(uint32_t rank) const { return rank / tp / pp; }
  uint32_t tensor_rank_of(uint32_t rank) const { return rank % tp; }
  uint32_t executions_per_step() const { return 2 * microbatches + 1; }
  // Returns the number of the step that a share of the steps begins at.
  uint32_t StepAt(double share) const { return static_cast<uint32_t>(share * steps); }
};

// Returns how many targets a kind of fault can have in this fleet.
uint32_t FaultTargets(const FleetPlan& plan, VerdictKind kind);

// Fails with INVALID_ARGUMENT, naming the value and its limits, if no fleet can be made of it.
absl::Status CheckFleetPlan(const FleetPlan& plan);

// Returns the ranks that a fault makes slow, or stops, ascending. Of kHangInside the members of the
// group; of kSlowCollective the same; none of kUnevenData.
std::vector<uint32_t> GuiltyRanks(const FleetPlan& plan, const PlannedFault& fault);
// Returns the phase in which the excess is, as insight's InsightPhaseName; empty where no phase is
// meant.
std::string_view GuiltyPhase(VerdictKind kind);
// Returns the number of a group as events have it. Groups are tensor-parallel (one for each replica
// and stage), data-parallel (stage and tensor rank) and pairs of neighbours in the pipeline.
uint64_t TensorGroup(const FleetPlan& plan, uint32_t rank);
uint64_t DataGroup(const FleetPlan& plan, uint32_t stage, uint32_t tensor_rank);
uint64_t PipelineGroup(const FleetPlan& plan, uint32_t earlier_rank);

// Parses "KIND@TARGET", and "KIND@TARGET:PERCENT" with "+BEGIN-END" in percent of the steps, such
// as "slow-core@417:50+25-100". Fails with INVALID_ARGUMENT and the accepted form.
absl::StatusOr<PlannedFault> ParsePlannedFault(std::string_view text);
// Parses "KIND@FIRST-LAST+BEGIN-END", such as "losses@32-63+50-60".
absl::StatusOr<PlannedHole> ParsePlannedHole(std::string_view text);
// Parses "INSTANCE:OFFSET_US,DRIFT_PPM[,STEP_US@PERCENT]", such as "3:250,15,-40000@50".
absl::StatusOr<PlannedClock> ParsePlannedClock(std::string_view text);

}  // namespace neurontrace
