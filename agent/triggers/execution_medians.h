// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/trace/trigger_limits.h"

namespace neurontrace {

// The median of the last few values. Constant memory, and constant time for each.
class RunningMedian {
 public:
  static constexpr size_t kWindow = 64;
  // Fewer say nothing.
  static constexpr size_t kEnough = 16;

  void Add(uint64_t value);
  std::optional<uint64_t> Get() const;

 private:
  std::array<uint64_t, kWindow> in_order_;  // of arrival; a ring
  std::array<uint64_t, kWindow> sorted_;
  size_t size_ = 0;
  size_t next_ = 0;
};

// How long executions of one core take, by its models (a core that runs two has two usual times),
// from the starts and stops that its runtime reports. Numbers come from a worker: what makes no
// sense is passed over. On one sequence.
class ExecutionMedians {
 public:
  // Models of one core that are told apart. Beyond: the one that ran longest ago is forgotten.
  static constexpr size_t kModelsMax = 8;
  // An execution that does not end is late after this, whatever its median is: what is read of a
  // worker can be so old.
  static constexpr uint64_t kUnendedMinNs = 2'000'000'000;

  // A start or a stop. `device_ns` is of the core's own counter; `host_ns` of its host's realtime.
  struct Mark {
    uint64_t tracking_id = 0;
    std::optional<uint64_t> execution;
    std::optional<uint64_t> device_ns;
    uint64_t model = 0;  // of a start; 0: not known
    uint64_t host_ns = 0;
    uint64_t read_ns = 0;  // when the agent read it, monotonic
  };
  struct Taken {
    std::optional<uint64_t> execution;
    uint64_t ns = 0;
    uint64_t median_ns = 0;  // of those before
  };

  void Begin(const Mark& mark);
  // The execution that this ends, if its start was seen and its model's median is known.
  std::optional<Taken> End(const Mark& mark);
  // One that has not ended, and has taken `times` its median, seen from when its start was read;
  // each is told once for a `teller` (0 to 63).
  std::optional<Taken> FindUnended(uint64_t now_ns, double times, uint32_t teller);
  // What has begun is not waited for any more.
  void ForgetOpen() { open_.clear(); }

 private:
  struct Open {
    Mark begin;
    uint64_t told = 0;  // a bit for each teller
  };
  struct Model {
    uint64_t id = 0;
    uint64_t used = 0;  // counts up
    RunningMedian median;
  };

  RunningMedian& MedianOf(uint64_t model);
  const Model* FindModel(uint64_t id) const;

  std::vector<Open> open_;     // in order of arrival; limits::kTriggerOpenExecutionsMax
  std::vector<Model> models_;  // kModelsMax
  uint64_t uses_ = 0;
};

}  // namespace neurontrace
