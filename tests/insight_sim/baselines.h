// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "simulate/fleet_model.h"

namespace neurontrace {

// Simple rules that are in use elsewhere, each in the form in which it names ranks.
enum class Baseline : uint8_t {
  // Who arrives last in more than half of the operations of one of its groups. True times: no clock
  // is wrong.
  kLastArriver,
  // Who was longest in one collective, if that is 1.5 times the median of such collectives.
  kLongestCollective,
  // NVRx (NVIDIA Resiliency Extension): device work, relative to the best rank's, below 0.75.
  kBestShare,
  // Greyhound (Wu et al., USENIX ATC'25): own work 1.1 times that of its own past.
  kOwnHistory,
  // Own work 1.15 times the median of the ranks of its pipeline stage.
  kStagePeers,
};
inline constexpr size_t kBaselines = 5;
const char* BaselineName(Baseline baseline);

// Applies all baselines to the events of a run. One thread.
class BaselineSink final : public FleetSink {
 public:
  // The plan must outlive it.
  explicit BaselineSink(const FleetPlan& plan);
  void Take(std::span<const FleetEvent> events) override;
  // Returns the ranks that a rule names, ascending.
  std::vector<uint32_t> Named(Baseline baseline) const;

 private:
  // A step of one rank, as sums of true time.
  struct Sums {
    double meeting_ns = 0;         // in operations with others
    double device_meeting_ns = 0;  // the part within nc_exec_running
    double running_ns = 0;
  };
  struct Rank {
    Sums sums;  // of the step that runs
    uint64_t step_end_ns = 0;
    std::vector<double> own_ns;  // by step
    std::vector<double> device_ns;
    // Of tensor- and data-parallel operations: all, and those in which it was last.
    std::array<uint32_t, 2> operations = {};
    std::array<uint32_t, 2> last = {};
    uint64_t longest_ns = 0;
  };
  struct Arrival {
    uint64_t time_ns = 0;
    uint32_t rank = 0;
    uint32_t members = 0;
  };

  void AddOperation(const FleetEvent& event);
  void EndStep(uint32_t rank, uint64_t end_ns);
  std::vector<uint32_t> NamedByHistory() const;
  std::vector<uint32_t> NamedByPeers() const;

  const FleetPlan& plan_;
  std::vector<Rank> ranks_;
  // By group and execution: the last arrival until all members have come.
  std::map<std::pair<uint64_t, uint64_t>, Arrival> arrivals_;
  std::vector<double> collective_ns_;  // every 64th, for the median
  uint64_t collectives_ = 0;
};

}  // namespace neurontrace
