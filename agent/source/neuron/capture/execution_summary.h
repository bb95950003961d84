// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "agent/source/neuron/capture/execution_gate.h"

namespace neurontrace {

// Combines the progress of all cores of a worker.
class ExecutionSummary {
 public:
  explicit ExecutionSummary(const ExecutionBounds& bounds) : bounds_(bounds) {}
  void Add(const ExecutionGate& gate);
  ExecutionProgress progress() const;

 private:
  const ExecutionBounds bounds_;
  std::optional<uint64_t> first_;
  std::optional<uint64_t> highest_first_;
  std::optional<uint64_t> lowest_newest_;
  std::optional<uint64_t> newest_;
  uint32_t cores_without_ = 0;
  bool unknown_newest_ = false;
  bool all_past_ = true;
};

}  // namespace neurontrace
