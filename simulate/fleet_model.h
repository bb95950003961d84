// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "simulate/fleet_dice.h"
#include "simulate/fleet_plan.h"

namespace neurontrace {

enum class FleetEventType : uint8_t {
  kExecute,        // nrt_execute
  kPrepare,        // kbl_exec_pre
  kPost,           // kbl_exec_post
  kRun,            // nc_exec_running
  kCollective,     // cc_running
  kDeviceBarrier,  // cc_exec_barrier
  kHostBarrier,    // enc_barrier
  kTensorWrite,    // nrt_tensor_write
  kMemory,         // nrt_tensor_allocate
  kError,          // numerical_err, an instant
};
inline constexpr size_t kFleetEventTypes = 10;
// Returns the runtime's name of the type. Static.
const char* RuntimeEventName(FleetEventType type);

// The operations by which ranks meet, as op_id of events has them.
enum class FleetOp : uint8_t { kNone = 0, kTensor = 1, kPipeline = 2, kData = 3, kWorld = 4 };

// One span or instant of one rank. A plain value.
struct FleetEvent {
  uint32_t rank = 0;
  FleetEventType type = FleetEventType::kExecute;
  FleetOp op = FleetOp::kNone;  // of what meets
  bool is_open = false;         // it never ended; the end is how far the stream reaches
  uint16_t model = 0;           // index into FleetModel::ModelName
  uint64_t start_ns = 0;        // by the clock of the rank's instance, which may step back between
  uint64_t end_ns = 0;
  uint64_t true_start_ns = 0;
  uint64_t true_end_ns = 0;
  uint64_t exec_id = 0;
  uint64_t group = 0;  // 0: the whole job
  uint64_t bytes = 0;  // of kTensorWrite and kMemory
};

// The clock of one instance. A plain value; times are in ns.
struct FleetClock {
  uint64_t start_ns = 0;  // of the run, true time, from which it drifts
  int64_t offset_ns = 0;
  double drift = 0;
  int64_t step_ns = 0;                 // by which it is set …
  uint64_t step_true_ns = UINT64_MAX;  // … at this true time; UINT64_MAX: not yet, or never
  uint32_t step_at = UINT32_MAX;       // the number of the training step before which it is set

  // Returns a true time as this clock shows it.
  uint64_t HostTime(uint64_t true_ns) const;
};

// What was lost of a rank's events. Times are those of its host.
struct FleetLoss {
  uint64_t events = 0;  // counted or not
  bool is_unknown = false;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// Gets the events of a fleet. An interface, because stores, files and the rule are fed alike.
class FleetSink {
 public:
  virtual ~FleetSink() = default;
  // Events of one step, in the order of the model. Valid during the call.
  virtual void Take(std::span<const FleetEvent> events) = 0;
};

enum class FleetOrder : uint8_t {
  kByRank,  // within a step, rank by rank
  kByTime,  // within a step, by true ends
};

// What a fleet of accelerators does in a training run, as events with the times of each host's
// clock. A causal model: each rank works through the microbatches of GPipe (Huang et al., 2019),
// forwards and then backwards, and an optimizer; where ranks meet, all leave together when the last
// one has arrived and the transfer is over. So a fault's effects spread as they do in a real fleet:
// its victims wait. docs/user/replay_kit.md describes the executions.
//
// Equal plans give equal events. A fault or a hole changes no draw, so two plans that differ in it
// can be compared rank by rank. Memory is a step's events. One thread.
class FleetModel {
 public:
  // The plan must have passed CheckFleetPlan.
  explicit FleetModel(FleetPlan plan, FleetOrder order = FleetOrder::kByRank);

  // Runs the next step. Returns false, and does nothing, if the run is over or has stopped.
  bool RunStep(FleetSink& sink);
  // Hands over what is still open, at the end of the capture. Called once, after the last step.
  void Finish(FleetSink& sink);

  const FleetPlan& plan() const { return plan_; }
  uint32_t steps_run() const { return step_; }
  // The true time that the run has reached; after Finish the end of the capture.
  uint64_t true_ns() const;
  // Returns a true time as the clock of the rank's instance shows it.
  uint64_t HostTime(uint32_t rank, uint64_t true_ns) const {
    return clocks_[plan_.instance_of(rank)].HostTime(true_ns);
  }
  const FleetClock& clock(uint32_t instance) const { return clocks_[instance]; }
  // For how long a rank has waited for others in all, and since when it is stuck, if it is.
  uint64_t wait_ns(uint32_t rank) const { return ranks_[rank].wait_ns; }
  std::optional<uint64_t> stuck_since_ns(uint32_t rank) const { return ranks_[rank].stuck_ns; }
  // What is known about a rank besides its events, after Finish.
  CoreCondition Condition(uint32_t rank) const;
  bool is_missing(uint32_t rank) const { return ranks_[rank].is_missing; }
  // Return what has happened so far: what was lost of a rank's events, whether its agent has fallen
  // silent, and whether its process has ended.
  FleetLoss LostSoFar(uint32_t rank) const;
  bool is_silent(uint32_t rank) const { return ranks_[rank].silent_since_ns.has_value(); }
  bool has_ended(uint32_t rank) const { return ranks_[rank].has_ended; }
  // The events that holes have taken away so far.
  uint64_t dropped() const { return dropped_; }
  static std::string ModelName(uint16_t model);

 private:
  enum class Part : uint8_t { kForward = 0, kBackward = 1, kOptimizer = 2 };
  // Added shares of own work, by where they are.
  struct Excess {
    double device = 0;
    double host = 0;  // spread over submit, pre, post and gap
    double input = 0;
    double memory = 0;
    double code = 0;
  };
  // A rank while it runs. Times are true.
  struct Rank {
    FleetDice dice;
    double noise = 0;
    uint64_t time_ns = 0;  // how far it has come
    uint64_t wait_ns = 0;
    std::optional<uint64_t> stuck_ns;
    bool is_missing = false;
    bool has_ended = false;
    bool is_executing = false;
    // Of the execution that runs.
    uint64_t execute_start_ns = 0;
    uint64_t run_start_ns = 0;
    double device_ns = 0;  // work of the device, in all
    double post_ns = 0;
    uint16_t model = 0;
    uint64_t exec_id = 0;
    std::optional<FleetEvent> open;  // what it is stuck in
    // Holes.
    bool is_dropping = false;
    bool has_wrong_ids = false;
    uint64_t lost = 0;
    uint64_t lost_begin_ns = 0;
    uint64_t lost_end_ns = 0;
    bool lost_unknown = false;
    std::optional<uint64_t> silent_since_ns;
  };

  // Sets what faults and holes do in the coming step.
  void ApplyFaults();
  void ApplyHoles();
  void Stop(const PlannedFault& fault);
  void DrawData();
  void RunForward(uint32_t microbatch);
  void RunBackward(uint32_t microbatch);
  void RunOptimizer();
  // Everything of an execution before the device; `work_ns` is its nominal own work.
  void Begin(uint32_t rank, Part part, uint32_t number, double work_ns);
  // A share of the device's work.
  void Work(uint32_t rank, double share);
  void End(uint32_t rank);
  // All members meet: they leave together, or none does.
  void Meet(std::span<const uint32_t> members, FleetEventType type, FleetOp op, uint64_t group,
            double transfer_ns);
  void MeetStage(uint32_t stage, double transfer_ns);  // its tensor-parallel groups
  // The boundary behind a stage, from there or back.
  void MeetNeighbours(uint32_t stage, double transfer_ns);
  void Emit(Rank& core, uint32_t rank, FleetEventType type, uint64_t start_ns, uint64_t end_ns,
            uint64_t bytes = 0);
  void Keep(FleetEvent event);
  void Flush(FleetSink& sink);
  FleetEvent EventOf(const Rank& core, uint32_t rank, FleetEventType type) const;

  const FleetPlan plan_;
  const FleetOrder order_;
  double forward_ns_ = 0;  // nominal own work of a microbatch; backwards it is twice that
  double optimizer_ns_ = 0;
  double data_transfer_ns_ = 0;
  std::vector<double> weights_;  // by stage
  std::vector<Rank> ranks_;
  std::vector<FleetClock> clocks_;             // by instance
  std::vector<Excess> excess_;                 // by rank
  std::vector<double> data_;                   // by replica: length of this step's sequences
  std::vector<double> stage_excess_;           // by stage
  std::vector<double> transfer_excess_;        // by data-parallel group
  std::vector<bool> group_hangs_;              // by data-parallel group
  std::vector<uint32_t> all_;                  // ranks
  std::vector<uint32_t> members_;              // reused
  std::vector<std::vector<FleetEvent>> kept_;  // by rank, of this step
  std::vector<FleetEvent> sorted_;             // reused
  FleetDice data_dice_;
  uint32_t step_ = 0;
  bool has_stopped_ = false;
  uint64_t end_ns_ = 0;  // of the capture; 0 before Finish
  uint64_t dropped_ = 0;
};

// Returns an event as the insight rule reads it; nullopt if no reader could pair its ends, because
// the clock was set back between them.
std::optional<InsightEvent> ToInsight(const FleetEvent& event, uint32_t core);
// Returns what InsightEvent::model has of a model.
uint64_t InsightModel(uint16_t model);

}  // namespace neurontrace
