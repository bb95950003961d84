// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/trace/loss.h"
#include "simulate/fleet_model.h"

namespace neurontrace {

// What one instance did since the batch before. A plain value.
struct ReplayBatch {
  struct RankLoss {
    uint32_t rank = 0;
    Loss loss;
  };

  uint64_t true_ns = 0;            // the run has come to here
  FleetClock clock;                // of the instance
  std::vector<FleetEvent> events;  // rank by rank
  std::vector<RankLoss> losses;
  std::vector<uint32_t> silent;  // ranks that send nothing from here on
  std::vector<uint32_t> ended;   // ranks whose process has ended
  bool is_last = false;          // of the run
};

// Collects what a model does as batches for the agents of its instances. One thread.
class ReplayBatches final : public FleetSink {
 public:
  // The model must outlive it.
  explicit ReplayBatches(const FleetModel& model);

  void Take(std::span<const FleetEvent> events) override;
  // Returns what came since the last call, a batch for each instance, as of a true time.
  std::vector<ReplayBatch> TakeBatches(uint64_t true_ns, bool is_last);

 private:
  struct Known {
    FleetLoss loss;
    bool is_silent = false;
    bool has_ended = false;
  };

  void AddChanges(uint32_t rank, ReplayBatch& batch);

  const FleetModel& model_;
  std::vector<ReplayBatch> batches_;  // by instance
  std::vector<Known> known_;          // by rank: what earlier batches say
};

}  // namespace neurontrace
