// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

namespace neurontrace {
namespace {

// Shares of an execution's nominal own work; the device has the rest.
constexpr double kSubmitShare = 0.008;
constexpr double kPrepareShare = 0.012;
constexpr double kPostShare = 0.008;
constexpr double kInputShare = 0.005;
constexpr double kMemoryShare = 0.002;
constexpr double kCodeShare = 0.005;
constexpr double kHostShare =
    kSubmitShare + kPrepareShare + kPostShare + kInputShare + kMemoryShare + kCodeShare;
// Transfers, as shares of a microbatch's work or of a step.
constexpr double kTensorTransferShare = 0.05;
constexpr double kPipelineTransferShare = 0.02;
constexpr double kDataTransferShare = 0.12;
constexpr double kOptimizerShare = 0.08;
constexpr double kBarrierNs = 20'000;
constexpr double kTransferNoise = 0.01;
constexpr double kExecuteTailNs = 2'000;  // from the end of kbl_exec_post to that of nrt_execute

// Parts of FleetDice.
enum DicePart : uint64_t { kRankDice = 1, kClockDice = 2, kDataDice = 3, kTransferDice = 4 };

uint64_t Rounded(double ns) { return ns <= 0 ? 0 : static_cast<uint64_t>(std::llround(ns)); }

}  // namespace

const char* RuntimeEventName(FleetEventType type) {
  switch (type) {
    case FleetEventType::kExecute:
      return "nrt_execute";
    case FleetEventType::kPrepare:
      return "kbl_exec_pre";
    case FleetEventType::kPost:
      return "kbl_exec_post";
    case FleetEventType::kRun:
      return "nc_exec_running";
    case FleetEventType::kCollective:
      return "cc_running";
    case FleetEventType::kDeviceBarrier:
      return "cc_exec_barrier";
    case FleetEventType::kHostBarrier:
      return "enc_barrier";
    case FleetEventType::kTensorWrite:
      return "nrt_tensor_write";
    case FleetEventType::kMemory:
      return "nrt_tensor_allocate";
    case FleetEventType::kError:
      return "numerical_err";
  }
  return "";
}

uint64_t FleetClock::HostTime(uint64_t true_ns) const {
  const double elapsed_ns = static_cast<double>(true_ns - start_ns);
  int64_t error_ns = offset_ns + static_cast<int64_t>(elapsed_ns * drift);
  if (true_ns >= step_true_ns) error_ns += step_ns;
  return true_ns + static_cast<uint64_t>(error_ns);
}

FleetModel::FleetModel(FleetPlan plan, FleetOrder order) : plan_(std::move(plan)), order_(order) {
  assert(CheckFleetPlan(plan_).ok());
  const double step_ns = static_cast<double>(plan_.step_ns);
  const double slots = plan_.microbatches + plan_.pp - 1.0;
  optimizer_ns_ = step_ns * kOptimizerShare;
  data_transfer_ns_ = step_ns * kDataTransferShare;
  forward_ns_ = step_ns * (1 - kOptimizerShare - kDataTransferShare) /
                (slots * 3 * (1 + kTensorTransferShare + kPipelineTransferShare));
  weights_ = plan_.stage_weights;
  weights_.resize(plan_.pp, 1.0);
  ranks_.resize(plan_.ranks());
  for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
    Rank& core = ranks_[rank];
    core.dice = FleetDice(plan_.seed, kRankDice, rank);
    core.noise = core.dice.Between(plan_.noise_low, plan_.noise_high);
    core.time_ns = plan_.start_ns;
  }
  clocks_.resize(plan_.instances());
  const auto offset_max = static_cast<double>(plan_.clock_offset_max_ns);
  for (uint32_t instance = 0; instance < clocks_.size(); ++instance) {
    FleetDice dice(plan_.seed, kClockDice, instance);
    clocks_[instance].start_ns = plan_.start_ns;
    clocks_[instance].offset_ns = static_cast<int64_t>(dice.Between(-offset_max, offset_max));
    clocks_[instance].drift =
        dice.Between(-plan_.clock_drift_max_ppm, plan_.clock_drift_max_ppm) * 1e-6;
  }
  for (const PlannedClock& clock : plan_.clocks) {
    clocks_[clock.instance] = {.start_ns = plan_.start_ns,
                               .offset_ns = clock.offset_ns,
                               .drift = clock.drift_ppm * 1e-6,
                               .step_ns = clock.step_ns,
                               .step_at = plan_.StepAt(clock.step_at)};
  }
  for (const PlannedHole& hole : plan_.holes) {
    if (hole.kind != HoleKind::kMissing) continue;
    for (const uint32_t rank : hole.ranks) ranks_[rank].is_missing = true;
  }
  excess_.resize(plan_.ranks());
  data_.resize(plan_.dp, 1.0);
  stage_excess_.resize(plan_.pp);
  transfer_excess_.resize(size_t{plan_.pp} * plan_.tp);
  group_hangs_.resize(size_t{plan_.pp} * plan_.tp);
  all_.resize(plan_.ranks());
  std::iota(all_.begin(), all_.end(), 0u);
  kept_.resize(plan_.ranks());
  data_dice_ = FleetDice(plan_.seed, kDataDice, 0);
}

bool FleetModel::RunStep(FleetSink& sink) {
  if (step_ == plan_.steps || has_stopped_) return false;
  for (FleetClock& clock : clocks_) {
    // Set between two steps of the fastest rank, so that spans of the others are across it.
    if (clock.step_at == step_) clock.step_true_ns = true_ns();
  }
  ApplyFaults();
  ApplyHoles();
  DrawData();
  for (uint32_t i = 0; i < plan_.microbatches; ++i) RunForward(i);
  for (uint32_t i = 0; i < plan_.microbatches; ++i) RunBackward(i);
  RunOptimizer();
  Flush(sink);
  ++step_;
  return true;
}

uint64_t FleetModel::true_ns() const {
  if (end_ns_ != 0) return end_ns_;
  uint64_t latest_ns = 0;
  for (const Rank& core : ranks_) latest_ns = std::max(latest_ns, core.time_ns);
  return latest_ns;
}

void FleetModel::ApplyFaults() {
  std::fill(excess_.begin(), excess_.end(), Excess{});
  std::fill(stage_excess_.begin(), stage_excess_.end(), 0.0);
  std::fill(transfer_excess_.begin(), transfer_excess_.end(), 0.0);
  for (const PlannedFault& fault : plan_.faults) {
    const uint32_t begin = plan_.StepAt(fault.begin);
    if (StopsFleet(fault.kind)) {
      if (step_ == begin) Stop(fault);
      continue;
    }
    if (step_ < begin || step_ >= plan_.StepAt(fault.end)) continue;
    if (fault.kind == VerdictKind::kUnevenRole) stage_excess_[fault.target] += fault.magnitude;
    if (fault.kind == VerdictKind::kSlowCollective)
      transfer_excess_[fault.target] += fault.magnitude;
    const bool by_rank =
        fault.kind != VerdictKind::kUnevenRole && fault.kind != VerdictKind::kSlowCollective;
    if (!by_rank) continue;
    for (const uint32_t rank : GuiltyRanks(plan_, fault)) {
      Excess& excess = excess_[rank];
      if (fault.kind == VerdictKind::kSlowCore) excess.device += fault.magnitude;
      if (fault.kind == VerdictKind::kInputStall) excess.input += fault.magnitude;
      if (fault.kind == VerdictKind::kMemoryStall) excess.memory += fault.magnitude;
      if (fault.kind == VerdictKind::kHostCode) excess.code += fault.magnitude;
      if (fault.kind == VerdictKind::kSlowHost || fault.kind == VerdictKind::kSlowProcess)
        excess.host += fault.magnitude;
    }
  }
}

void FleetModel::Stop(const PlannedFault& fault) {
  has_stopped_ = true;  // after this step, in which everybody gets stuck
  if (fault.kind == VerdictKind::kHangInside) {
    group_hangs_[fault.target] = true;
    return;
  }
  for (const uint32_t rank : GuiltyRanks(plan_, fault)) {
    Rank& core = ranks_[rank];
    if (fault.kind == VerdictKind::kDeviceError) {
      Begin(rank, Part::kForward, 0, forward_ns_);
      Work(rank, 0.25);
      Emit(core, rank, FleetEventType::kError, core.time_ns, core.time_ns);
    }
    core.has_ended = fault.kind == VerdictKind::kDeadWorker;
    core.stuck_ns = core.time_ns;
  }
}

void FleetModel::ApplyHoles() {
  for (Rank& core : ranks_) core.is_dropping = core.has_wrong_ids = false;
  for (const PlannedHole& hole : plan_.holes) {
    if (step_ < plan_.StepAt(hole.begin)) continue;
    const bool is_over = step_ >= plan_.StepAt(hole.end);
    for (const uint32_t rank : hole.ranks) {
      Rank& core = ranks_[rank];
      switch (hole.kind) {
        case HoleKind::kLosses:
        case HoleKind::kUnknownLosses:
          if (is_over) break;
          if (core.lost_begin_ns == 0) core.lost_begin_ns = core.time_ns;
          core.is_dropping = true;
          core.lost_unknown = hole.kind == HoleKind::kUnknownLosses;
          break;
        case HoleKind::kLateAgent:
          core.is_dropping = true;
          if (!core.silent_since_ns) core.silent_since_ns = core.time_ns;
          break;
        case HoleKind::kWrongIds:
          core.has_wrong_ids = !is_over;
          break;
        case HoleKind::kMissing:
          break;
      }
    }
  }
}

void FleetModel::DrawData() {
  double spread = plan_.data_spread;
  for (const PlannedFault& fault : plan_.faults) {
    const bool holds = step_ >= plan_.StepAt(fault.begin) && step_ < plan_.StepAt(fault.end);
    if (fault.kind == VerdictKind::kUnevenData && holds) spread = std::max(spread, fault.magnitude);
  }
  for (double& length : data_) length = std::exp(spread * data_dice_.Normal());
}

void FleetModel::RunForward(uint32_t microbatch) {
  for (const uint32_t rank : all_) Begin(rank, Part::kForward, microbatch, forward_ns_);
  for (uint32_t stage = 0; stage < plan_.pp; ++stage) {
    if (stage > 0) MeetNeighbours(stage - 1, forward_ns_ * kPipelineTransferShare);
    for (const uint32_t rank : all_) {
      if (plan_.stage_of(rank) == stage) Work(rank, 0.5);
    }
    MeetStage(stage, forward_ns_ * kTensorTransferShare);
    for (const uint32_t rank : all_) {
      if (plan_.stage_of(rank) == stage) Work(rank, 0.5);
    }
  }
  for (const uint32_t rank : all_) End(rank);
}

void FleetModel::RunBackward(uint32_t microbatch) {
  const double work_ns = 2 * forward_ns_;
  for (const uint32_t rank : all_)
    Begin(rank, Part::kBackward, plan_.microbatches + microbatch, work_ns);
  for (uint32_t stage = plan_.pp; stage-- > 0;) {
    if (stage + 1 < plan_.pp) MeetNeighbours(stage, work_ns * kPipelineTransferShare);
    for (const uint32_t rank : all_) {
      if (plan_.stage_of(rank) == stage) Work(rank, 0.5);
    }
    MeetStage(stage, work_ns * kTensorTransferShare);
    for (const uint32_t rank : all_) {
      if (plan_.stage_of(rank) == stage) Work(rank, 0.5);
    }
  }
  for (const uint32_t rank : all_) End(rank);
}

void FleetModel::RunOptimizer() {
  for (const uint32_t rank : all_)
    Begin(rank, Part::kOptimizer, 2 * plan_.microbatches, optimizer_ns_);
  // The hosts meet before the devices start.
  Meet(all_, FleetEventType::kHostBarrier, FleetOp::kWorld, 0, kBarrierNs);
  for (Rank& core : ranks_) {
    if (!core.stuck_ns) core.run_start_ns = core.time_ns;
  }
  for (const uint32_t rank : all_) Work(rank, 0.5);
  for (uint32_t stage = 0; plan_.dp > 1 && stage < plan_.pp; ++stage) {
    for (uint32_t tensor_rank = 0; tensor_rank < plan_.tp; ++tensor_rank) {
      const uint32_t number = stage * plan_.tp + tensor_rank;
      members_.clear();
      for (uint32_t replica = 0; replica < plan_.dp; ++replica)
        members_.push_back(replica * plan_.pp * plan_.tp + number);
      const double transfer_ns =
          group_hangs_[number] ? -1 : data_transfer_ns_ * (1 + transfer_excess_[number]);
      Meet(members_, FleetEventType::kCollective, FleetOp::kData,
           DataGroup(plan_, stage, tensor_rank), transfer_ns);
    }
  }
  for (const uint32_t rank : all_) Work(rank, 0.5);
  Meet(all_, FleetEventType::kDeviceBarrier, FleetOp::kWorld, 0, kBarrierNs);
  for (const uint32_t rank : all_) End(rank);
}

void FleetModel::Begin(uint32_t rank, Part part, uint32_t number, double work_ns) {
  Rank& core = ranks_[rank];
  if (core.stuck_ns || core.is_executing) return;
  const uint32_t stage = plan_.stage_of(rank);
  const Excess& excess = excess_[rank];
  double scale = weights_[stage];
  if (part != Part::kOptimizer) scale *= data_[plan_.replica_of(rank)];
  const double own_ns = work_ns * (kHostShare + (1 - kHostShare) * scale);
  // Always the same number of draws, so that faults change none of them.
  const double device_noise = std::max(0.2, 1 + core.noise * core.dice.Normal());
  const double host_noise = std::max(0.2, 1 + 2 * core.noise * core.dice.Normal());
  const double luck = core.dice.Unit();
  const double hiccup = luck < plan_.hiccup_chance ? 1 + 0.3 * luck / plan_.hiccup_chance : 1;
  core.device_ns = work_ns * (1 - kHostShare) * scale * device_noise * hiccup +
                   own_ns * (excess.device + stage_excess_[stage]);
  const double host_ns = work_ns * host_noise;
  const double added_ns = own_ns * excess.host;
  core.post_ns = host_ns * kPostShare + added_ns * 0.15;
  core.model = static_cast<uint16_t>(stage * 3 + static_cast<uint32_t>(part));
  core.exec_id = 1 + uint64_t{step_} * plan_.executions_per_step() + number;

  // The gap: the input, memory, and the program's own code.
  uint64_t at_ns = core.time_ns + Rounded(host_ns * kCodeShare / 2);
  uint64_t start_ns =
      std::exchange(at_ns, at_ns + Rounded(host_ns * kInputShare + own_ns * excess.input));
  Emit(core, rank, FleetEventType::kTensorWrite, start_ns, at_ns, 1 << 20);
  start_ns = std::exchange(at_ns, at_ns + Rounded(host_ns * kMemoryShare + own_ns * excess.memory));
  Emit(core, rank, FleetEventType::kMemory, start_ns, at_ns, 1 << 16);
  at_ns += Rounded(host_ns * kCodeShare / 2 + own_ns * excess.code + added_ns * 0.25);
  core.execute_start_ns = at_ns;
  at_ns += Rounded(host_ns * kSubmitShare + added_ns * 0.25);
  start_ns = std::exchange(at_ns, at_ns + Rounded(host_ns * kPrepareShare + added_ns * 0.35));
  Emit(core, rank, FleetEventType::kPrepare, start_ns, at_ns);
  core.time_ns = core.run_start_ns = at_ns;
  core.is_executing = true;
}

void FleetModel::Work(uint32_t rank, double share) {
  Rank& core = ranks_[rank];
  if (!core.stuck_ns) core.time_ns += Rounded(core.device_ns * share);
}

void FleetModel::End(uint32_t rank) {
  Rank& core = ranks_[rank];
  if (core.stuck_ns) return;
  Emit(core, rank, FleetEventType::kRun, core.run_start_ns, core.time_ns);
  const uint64_t post_end_ns = core.time_ns + Rounded(core.post_ns);
  Emit(core, rank, FleetEventType::kPost, core.time_ns, post_end_ns);
  core.time_ns = post_end_ns + Rounded(kExecuteTailNs);
  Emit(core, rank, FleetEventType::kExecute, core.execute_start_ns, core.time_ns);
  core.is_executing = false;
}

void FleetModel::Meet(std::span<const uint32_t> members, FleetEventType type, FleetOp op,
                      uint64_t group, double transfer_ns) {
  bool is_stuck = transfer_ns < 0;
  uint64_t last_ns = 0;
  for (const uint32_t rank : members) {
    is_stuck |= ranks_[rank].stuck_ns.has_value();
    last_ns = std::max(last_ns, ranks_[rank].time_ns);
  }
  FleetDice dice(plan_.seed ^ static_cast<uint64_t>(op) << 56, kTransferDice + group,
                 uint64_t{step_} << 32 | ranks_[members.front()].exec_id);
  const uint64_t leave_ns = last_ns + Rounded(transfer_ns * (1 + kTransferNoise * dice.Normal()));
  for (const uint32_t rank : members) {
    Rank& core = ranks_[rank];
    if (core.stuck_ns) continue;
    FleetEvent event = EventOf(core, rank, type);
    event.op = op;
    event.group = group;
    event.true_start_ns = core.time_ns;
    if (is_stuck) {
      core.stuck_ns = core.time_ns;
      event.is_open = true;
      core.open = event;
      continue;
    }
    event.true_end_ns = leave_ns;
    core.wait_ns += last_ns - core.time_ns;
    core.time_ns = leave_ns;
    Keep(event);
  }
}

void FleetModel::MeetStage(uint32_t stage, double transfer_ns) {
  if (plan_.tp < 2) return;
  for (uint32_t replica = 0; replica < plan_.dp; ++replica) {
    const uint32_t first = (replica * plan_.pp + stage) * plan_.tp;
    Meet(std::span(all_).subspan(first, plan_.tp), FleetEventType::kCollective, FleetOp::kTensor,
         TensorGroup(plan_, first), transfer_ns);
  }
}

void FleetModel::MeetNeighbours(uint32_t stage, double transfer_ns) {
  for (const uint32_t rank : all_) {
    if (plan_.stage_of(rank) != stage) continue;
    const uint32_t pair[] = {rank, rank + plan_.tp};
    Meet(pair, FleetEventType::kCollective, FleetOp::kPipeline, PipelineGroup(plan_, rank),
         transfer_ns);
  }
}

FleetEvent FleetModel::EventOf(const Rank& core, uint32_t rank, FleetEventType type) const {
  FleetEvent event;
  event.rank = rank;
  event.type = type;
  event.model = core.model;
  event.exec_id = core.exec_id + (core.has_wrong_ids ? 1 : 0);
  return event;
}

void FleetModel::Emit(Rank& core, uint32_t rank, FleetEventType type, uint64_t start_ns,
                      uint64_t end_ns, uint64_t bytes) {
  FleetEvent event = EventOf(core, rank, type);
  event.true_start_ns = start_ns;
  event.true_end_ns = end_ns;
  event.bytes = bytes;
  Keep(event);
}

void FleetModel::Keep(FleetEvent event) {
  Rank& core = ranks_[event.rank];
  if (core.is_missing) return;
  if (core.is_dropping) {
    ++dropped_;
    if (core.silent_since_ns) return;  // it will come later, and is not lost
    ++core.lost;
    core.lost_end_ns = std::max(core.lost_end_ns, event.true_end_ns);
    return;
  }
  event.start_ns = HostTime(event.rank, event.true_start_ns);
  event.end_ns = HostTime(event.rank, event.true_end_ns);
  assert(kept_[event.rank].empty() || kept_[event.rank].back().true_end_ns <= event.true_end_ns);
  kept_[event.rank].push_back(event);
}

void FleetModel::Flush(FleetSink& sink) {
  if (order_ == FleetOrder::kByRank) {
    for (std::vector<FleetEvent>& events : kept_) {
      if (!events.empty()) sink.Take(events);
      events.clear();
    }
    return;
  }
  sorted_.clear();
  for (std::vector<FleetEvent>& events : kept_) {
    sorted_.insert(sorted_.end(), events.begin(), events.end());
    events.clear();
  }
  std::stable_sort(sorted_.begin(), sorted_.end(), [](const FleetEvent& a, const FleetEvent& b) {
    return a.true_end_ns < b.true_end_ns;
  });
  if (!sorted_.empty()) sink.Take(sorted_);
}

void FleetModel::Finish(FleetSink& sink) {
  assert(end_ns_ == 0);
  const uint64_t reached_ns = true_ns();
  end_ns_ = reached_ns + (has_stopped_ ? plan_.hang_ns : 0);
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& core = ranks_[rank];
    if (!core.stuck_ns || core.is_missing || core.is_dropping) continue;
    const auto keep_open = [&](FleetEvent event) {
      event.is_open = true;
      event.true_end_ns = end_ns_;
      Keep(event);
    };
    if (core.open) keep_open(*core.open);
    if (!core.is_executing) continue;
    FleetEvent event = EventOf(core, rank, FleetEventType::kRun);
    event.true_start_ns = core.run_start_ns;
    // In a barrier of the hosts the device has not started.
    if (!core.open || core.open->type != FleetEventType::kHostBarrier) keep_open(event);
    event.type = FleetEventType::kExecute;
    event.true_start_ns = core.execute_start_ns;
    keep_open(event);
  }
  Flush(sink);
}

CoreCondition FleetModel::Condition(uint32_t rank) const {
  assert(end_ns_ != 0);
  const Rank& core = ranks_[rank];
  CoreCondition condition;
  uint64_t alive_ns = end_ns_;
  if (core.silent_since_ns) alive_ns = *core.silent_since_ns;
  if (core.has_ended) {
    alive_ns = std::min(alive_ns, *core.stuck_ns);
    condition.has_ended = true;
    condition.ended_at_ns = HostTime(rank, *core.stuck_ns);
  }
  condition.alive_at_ns = HostTime(rank, alive_ns);
  const FleetLoss loss = LostSoFar(rank);
  if (loss.events > 0) {
    condition.lost_events = loss.is_unknown ? 0 : loss.events;
    condition.lost_unknown = loss.is_unknown;
    condition.loss_begin_ns = loss.begin_ns;
    condition.loss_end_ns = loss.end_ns;
  }
  return condition;
}

FleetLoss FleetModel::LostSoFar(uint32_t rank) const {
  const Rank& core = ranks_[rank];
  if (core.lost == 0) return {};
  return {.events = core.lost,
          .is_unknown = core.lost_unknown,
          .begin_ns = HostTime(rank, core.lost_begin_ns),
          .end_ns = HostTime(rank, core.lost_end_ns)};
}

std::string FleetModel::ModelName(uint16_t model) {
  static constexpr const char* kParts[] = {"forward", "backward", "optimizer"};
  return fmt::format("simulated/stage{}/{}.neff", model / 3, kParts[model % 3]);
}

uint64_t InsightModel(uint16_t model) { return FleetDice(0, 5, model).Next64() | 1; }

std::optional<InsightEvent> ToInsight(const FleetEvent& event, uint32_t core) {
  static constexpr InsightClass kClasses[kFleetEventTypes] = {
      InsightClass::kExecute,     InsightClass::kPrepare,    InsightClass::kPost,
      InsightClass::kRun,         InsightClass::kCollective, InsightClass::kDeviceBarrier,
      InsightClass::kHostBarrier, InsightClass::kTransferIo, InsightClass::kMemory,
      InsightClass::kError};
  if (event.end_ns < event.start_ns) return std::nullopt;
  InsightEvent seen;
  seen.core = core;
  seen.kind = kClasses[static_cast<size_t>(event.type)];
  seen.is_open = event.is_open;
  seen.start_ns = event.start_ns;
  seen.end_ns = event.end_ns;
  // The runtime gives cc_exec_barrier and nrt_execute no exec_id.
  const bool has_exec =
      event.type != FleetEventType::kDeviceBarrier && event.type != FleetEventType::kExecute &&
      event.type != FleetEventType::kTensorWrite && event.type != FleetEventType::kMemory;
  if (has_exec) seen.exec_id = event.exec_id;
  if (event.type == FleetEventType::kCollective) seen.op_id = static_cast<uint64_t>(event.op);
  const bool has_model =
      event.type != FleetEventType::kCollective && event.type != FleetEventType::kHostBarrier &&
      event.type != FleetEventType::kTensorWrite && event.type != FleetEventType::kMemory;
  if (has_model) seen.model = InsightModel(event.model);
  seen.group = event.group;
  return seen;
}

}  // namespace neurontrace
