// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/sim_core.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tests/fake_nrt/fake_nrt.h"

namespace neurontrace {
namespace {

// Events that are due within this time of each other are emitted in one wake-up.
constexpr int64_t kQuantumNs = 1'000'000;

}  // namespace

SimCore::SimCore(const Schedule& schedule, const WorkloadForms& forms, GroundTruth& truth,
                 const StopSignal& stop, const SimCoreOptions& options)
    : schedule_(schedule),
      stop_(stop),
      options_(options),
      planner_(schedule, forms, options.planner),
      truth_(truth, options.planner.rank, options.planner.nc_idx) {}

void SimCore::Run() {
  thread_id_ = static_cast<uint64_t>(gettid());
  EmitAll(planner_.PlanLoad(TrueNow()));
  uint64_t step = schedule_.FirstStepFrom(TrueNow());
  while (planner_.exec_id() < options_.executions) {
    // A workload that cannot keep up with its schedule ends in time too.
    if (schedule_.StepBegin(step) >= options_.end_ns) break;
    if (TrueNow() - schedule_.period_ns() >= options_.end_ns) break;
    if (planner_.exec_id() == options_.communicator_after) options_.join_communicator();
    if (stop_.WaitUntil(schedule_.StepBegin(step))) break;
    const std::string& stall_file = options_.stall_file;
    if (!stall_file.empty() && access(stall_file.c_str(), F_OK) == 0)
      return Stall(planner_.Plan(step));
    const bool goes_on = EmitAll(planner_.Plan(step++));
    truth_.Flush();
    if (!goes_on) break;
  }
  truth_.Flush();
}

void SimCore::Stall(std::span<const PlannedEvent> events) {
  const auto end = std::find_if(events.begin(), events.end(), [](const PlannedEvent& event) {
    return event.form.event_type == std::string_view("nc_exec_running") &&
           event.form.phase == std::string_view("stop");
  });
  EmitAll({events.begin(), end});
  truth_.Flush();
  stop_.WaitUntil(INT64_MAX);
}

bool SimCore::EmitAll(std::span<const PlannedEvent> events) {
  int64_t now = TrueNow();
  for (const PlannedEvent& event : events) {
    if (event.emit_ns > now) {
      if (stop_.WaitUntil(std::max(event.emit_ns, now + kQuantumNs))) return false;
      now = TrueNow();
    }
    Emit(event);
  }
  return true;
}

void SimCore::Emit(const PlannedEvent& event) {
  fake_nrt_event out = {.form = event.form.form,
                        .nc_idx = options_.planner.nc_idx,
                        .has_nrta_seq_id = event.nrta_seq_id != 0,
                        .thread_id = thread_id_,
                        .tracking_id = event.tracking_id,
                        .timestamp_ns = static_cast<uint64_t>(event.timestamp_ns),
                        .nrta_seq_id = event.nrta_seq_id};
  std::copy(event.values.begin(), event.values.end(), out.values);
  ++emitted_;
  fake_nrt_receipt receipt = {};
  if (!fake_nrt_emit(&out, &receipt)) return;
  ++accepted_;
  truth_.Accepted(event, receipt, planner_.exec_id());
}

}  // namespace neurontrace
