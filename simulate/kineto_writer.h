// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "simulate/fleet_model.h"

namespace neurontrace {

// Writes a simulated run as JSON in the form of PyTorch's Kineto, a file for each rank:
// rank_00417.json, with complete events ("ph": "X") in microseconds of the host's clock, operations
// of the device in category "kernel" and those of the host in "cpu_op". Collectives have the
// arguments that PyTorch gives NCCL's. Opens a file at a time. One thread.
class KinetoWriter final : public FleetSink {
 public:
  // The directory must exist; the model must outlive it.
  KinetoWriter(std::string directory, const FleetModel& model);

  // Errors are kept for Finish.
  void Take(std::span<const FleetEvent> events) override;
  // Writes what is left and ends the files. Fails with UNAVAILABLE and the file's name.
  absl::Status Finish();

 private:
  std::string PathOf(uint32_t rank) const;
  void AppendEvent(const FleetEvent& event);
  void WriteAll();
  void Write(uint32_t rank, const std::string& text);

  const std::string directory_;
  const FleetModel& model_;
  std::vector<std::string> waiting_;  // by rank
  std::vector<bool> has_file_;        // by rank
  size_t waiting_bytes_ = 0;
  absl::Status status_;
};

}  // namespace neurontrace
