// SPDX-License-Identifier: Apache-2.0
#include "simulate/replay_batches.h"

#include <utility>

namespace neurontrace {

ReplayBatches::ReplayBatches(const FleetModel& model)
    : model_(model), batches_(model.plan().instances()), known_(model.plan().ranks()) {}

void ReplayBatches::Take(std::span<const FleetEvent> events) {
  for (const FleetEvent& event : events)
    batches_[model_.plan().instance_of(event.rank)].events.push_back(event);
}

std::vector<ReplayBatch> ReplayBatches::TakeBatches(uint64_t true_ns, bool is_last) {
  std::vector<ReplayBatch> taken =
      std::exchange(batches_, std::vector<ReplayBatch>(batches_.size()));
  for (uint32_t instance = 0; instance < taken.size(); ++instance) {
    taken[instance].true_ns = true_ns;
    taken[instance].clock = model_.clock(instance);
    taken[instance].is_last = is_last;
  }
  for (uint32_t rank = 0; rank < known_.size(); ++rank) {
    if (!model_.is_missing(rank)) AddChanges(rank, taken[model_.plan().instance_of(rank)]);
  }
  return taken;
}

void ReplayBatches::AddChanges(uint32_t rank, ReplayBatch& batch) {
  Known& known = known_[rank];
  const FleetLoss loss = model_.LostSoFar(rank);
  if (loss.events > known.loss.events) {
    batch.losses.push_back(
        {.rank = rank,
         .loss = {.place = LossPlace::kRuntimeRing,
                  .reason = LossReason::kOverwritten,
                  .events = loss.is_unknown ? 0 : loss.events - known.loss.events,
                  .events_unknown = loss.is_unknown,
                  .first_timestamp_ns = known.loss.events == 0 ? loss.begin_ns : known.loss.end_ns,
                  .last_timestamp_ns = loss.end_ns,
                  .detail = "simulated"}});
    known.loss = loss;
  }
  if (!std::exchange(known.is_silent, model_.is_silent(rank)) && known.is_silent)
    batch.silent.push_back(rank);
  if (!std::exchange(known.has_ended, model_.has_ended(rank)) && known.has_ended)
    batch.ended.push_back(rank);
}

}  // namespace neurontrace
