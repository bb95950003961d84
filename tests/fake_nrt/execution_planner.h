// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "tests/fake_nrt/host_clock.h"
#include "tests/fake_nrt/sim_schedule.h"
#include "tests/fake_nrt/workload_forms.h"
#include "tests/fake_nrt/workload_mix.h"

namespace neurontrace {

// The free-running counter of one physical core, in its own nanoseconds from its own start.
struct SimDeviceClock {
  int64_t base_ns = 0;  // at the origin
  double drift_ppm = 0;
  int64_t origin_ns = 0;

  int64_t Read(int64_t true_ns) const {
    const int64_t since = true_ns - origin_ns;
    return base_ns + since + static_cast<int64_t>(drift_ppm * 1e-6 * static_cast<double>(since));
  }
};

// One event that a core is going to emit.
struct PlannedEvent {
  NamedForm form;
  int64_t emit_ns = 0;       // true time at which it enters the ring
  int64_t true_ns = 0;       // true time of what it reports
  int64_t timestamp_ns = 0;  // what the runtime stamps it with
  uint32_t span = 0;         // pairs start and stop within the execution
  uint64_t tracking_id = 0;
  uint64_t nrta_seq_id = 0;  // 0: none
  std::array<uint64_t, FAKE_NRT_VALUES_MAX> values = {};
};

struct PlannerOptions {
  WorkloadMix mix;
  HostClock host_clock;
  uint32_t rank = 0;
  uint32_t nc_idx = 0;
  uint32_t physical_per_logical = 1;
  uint32_t first_physical_core = 0;  // of this logical core
  bool hardware_after_sync = false;  // hardware events enter the ring behind their sync point
};

// Lays out the events of one execution after the other for one logical core, in the order in which
// they enter the ring. One thread.
class ExecutionPlanner {
 public:
  // `schedule` and `forms` outlive the planner.
  ExecutionPlanner(const Schedule& schedule, const WorkloadForms& forms,
                   const PlannerOptions& options);

  // The events of a step; valid until the next call. exec_id counts the calls.
  std::span<const PlannedEvent> Plan(uint64_t step, const StepDelay& delay = {});
  // The events of the same step again, with another delay: the same events, and in the same order
  // those from before the first that the change delays.
  std::span<const PlannedEvent> Replan(uint64_t step, const StepDelay& delay);
  uint64_t exec_id() const { return exec_id_; }
  // The model load that precedes all executions.
  std::span<const PlannedEvent> PlanLoad(int64_t true_ns);

 private:
  using Values = std::initializer_list<uint64_t>;
  // A device counter value and the wall clock reading that the runtime takes for the same moment.
  struct SyncPair {
    int64_t device_ns;
    int64_t cpu_ns;
  };
  struct HostKind {
    const SpanForms* forms;
    uint32_t count;
  };

  uint32_t NewSpan() { return next_span_++; }
  PlannedEvent& Add(const NamedForm& form, uint32_t span, int64_t true_ns, Values values);
  void HostSpan(const SpanForms& forms, int64_t start_ns, int64_t stop_ns, Values values);
  void DeviceSpan(const SpanForms& forms, uint32_t physical, int64_t start_ns, int64_t stop_ns,
                  Values start_values, size_t ticks_at);
  void AddDevice(const NamedForm& form, uint32_t span, uint32_t physical, int64_t true_ns,
                 Values values, size_t ticks_at);

  std::span<const PlannedEvent> LayOut(uint64_t step, const StepDelay& delay);
  int64_t PlanSyncPairs(uint64_t step, int64_t latched_ns);
  void PlanHostWork(HostKind parents, HostKind children, int64_t begin_ns, int64_t end_ns);
  void AddMemoryEvent(const SpanForms& forms, uint64_t bits, int64_t start_ns, int64_t stop_ns);
  void PlanDevice(uint64_t step, const RankStep& times);
  void PlanExecute(uint64_t step, const RankStep& times, int64_t sync_ns, int64_t stop_ns);
  void PlanOccasional(uint64_t step, const RankStep& times);
  void Finish();

  const Schedule& schedule_;
  const WorkloadForms& forms_;
  const PlannerOptions options_;
  std::vector<SimDeviceClock> device_clocks_;  // per physical core
  std::vector<PlannedEvent> events_;
  std::vector<uint64_t> tracking_ids_;  // per span
  std::vector<SyncPair> sync_;          // of this execution, per physical core
  int64_t sync_emit_ns_ = 0;
  uint32_t next_span_ = 0;
  uint64_t exec_id_ = 0;
  uint64_t model_ = 0;
  uint64_t device_bytes_ = 5368709120;  // allocated on the device, as the memory events tell it
  uint64_t device_bytes_before_ = 0;    // this step
};

}  // namespace neurontrace
