// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/lock_step_fleet.h"

#include <algorithm>
#include <map>

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;

uint64_t Ns(double ms) { return static_cast<uint64_t>(ms * 1e6); }

// Finalizer of MurmurHash3.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

}  // namespace

LockStepFleet::LockStepFleet(uint32_t count, uint32_t per_process) {
  for (uint32_t core = 0; core < count; ++core) {
    const uint32_t process = core / per_process;
    cores.push_back({.job = "llama",
                     .instance_id = "i-" + std::to_string(process / 2),
                     .process = process,
                     .worker_gid = core,
                     .nc_idx = core % per_process});
    state_.push_back({.offset_ns = kHourNs * (process / 2)});
  }
}

// In [0, 1).
double LockStepFleet::Random(uint32_t core) const {
  return static_cast<double>(Mix(Mix(seed) ^ Mix(core * 1'000'003ull + execution_)) >> 11) *
         0x1p-53;
}

LockStepFleet::Reached LockStepFleet::ReachCollective(uint32_t core) {
  Reached reached;
  FleetWork& work = reached.work;
  if (plan) plan(core, execution_, work);
  work.device *= 1 + noise * (2 * Random(core) - 1);
  const CoreState& state = state_[core];
  reached.call = state.clock_ns + state.post_ns + Ns(work.gap);
  reached.prepare = reached.call + Ns(work.submit);
  reached.run = reached.prepare + Ns(work.pre);
  reached.enter = reached.run + Ns(work.device);
  return reached;
}

void LockStepFleet::Emit(uint32_t core, const Reached& reached, uint64_t leave,
                         std::vector<InsightEvent>& events) {
  CoreState& state = state_[core];
  const FleetWork& work = reached.work;
  const uint64_t exec_id = execution_ + 1 + work.exec_id_shift;
  const uint64_t begin = state.clock_ns + state.post_ns;
  const auto add = [&](InsightClass kind, uint64_t start, uint64_t end, bool is_open = false) {
    const bool is_meeting = kind == InsightClass::kCollective;
    events.push_back({.core = core,
                      .kind = kind,
                      .is_open = is_open,
                      .start_ns = start + state.offset_ns,
                      .end_ns = end + state.offset_ns,
                      .exec_id = kind == InsightClass::kExecute ? 0 : exec_id,
                      .op_id = is_meeting ? uint64_t{17} : 0,
                      .model = work.model,
                      .group = is_meeting ? group_of(core) : 0});
  };
  if (work.io > 0) add(InsightClass::kTransferIo, begin, begin + Ns(work.io));
  if (work.memory > 0)
    add(InsightClass::kMemory, begin + Ns(work.io), begin + Ns(work.io + work.memory));
  add(InsightClass::kPrepare, reached.prepare, reached.run);
  if (work.stays_inside) {
    add(InsightClass::kCollective, reached.enter, reached.enter + 1, true);
    add(InsightClass::kRun, reached.run, reached.enter + 1, true);
    state.has_stopped = true;
    state.clock_ns = reached.enter + 1;
    return;
  }
  add(InsightClass::kCollective, reached.enter, leave);
  add(InsightClass::kRun, reached.run, leave);
  add(InsightClass::kPost, leave, leave + Ns(work.post));
  add(InsightClass::kExecute, reached.call, leave + Ns(work.post));
  state.clock_ns = leave;
  state.post_ns = Ns(work.post);
}

std::vector<std::vector<InsightEvent>> LockStepFleet::Run(uint32_t executions) {
  std::vector<std::vector<InsightEvent>> events(cores.size());
  for (uint32_t i = 0; i < executions; ++i, ++execution_) {
    std::vector<Reached> reached(cores.size());
    std::map<uint64_t, uint64_t> leave;  // by group
    std::map<uint64_t, double> transfer;
    for (uint32_t core = 0; core < cores.size(); ++core) {
      if (state_[core].has_stopped) continue;
      reached[core] = ReachCollective(core);
      if (reached[core].work.has_stopped) state_[core].has_stopped = true;
      const uint64_t group = group_of(core);
      leave[group] = std::max(leave[group], reached[core].enter);
      transfer[group] = std::max(transfer[group], reached[core].work.transfer);
    }
    for (uint32_t core = 0; core < cores.size(); ++core) {
      if (state_[core].has_stopped) continue;
      const uint64_t group = group_of(core);
      Emit(core, reached[core], leave[group] + Ns(transfer[group]), events[core]);
    }
  }
  return events;
}

}  // namespace neurontrace
