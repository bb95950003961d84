// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/random.h"
#include "lib/trace/event.h"
#include "lib/trace/event_chunk_builder.h"

namespace neurontrace {

// One event of a mix; `values` belong to the mix and last until its next execution but one.
struct MixEvent {
  uint32_t shape = 0;  // index into EventMix::shapes()
  EventFields fields;
  std::vector<AttributeValue> values;
};

// What one NeuronCore of two physical cores records while a large language model decodes: per
// execution the numbers of a real summary (vLLM, tensor parallel over four cores), with attributes,
// nested as the runtime nests them, the hardware's events reported in one go when the execution is
// over, and so out of order. Times, sizes and handles are drawn from a seed. For benchmarks; no
// claim that a value is true to life beyond its type, its size and how much it varies.
class EventMix {
 public:
  enum class Memory : uint8_t {
    kDefault,  // without what the default filter leaves out: 312 events an execution
    kAll,      // with tensor and device memory events: 970
  };

  EventMix(uint64_t seed, uint32_t nc_idx, Memory memory);

  std::span<const Shape> shapes() const { return shapes_; }
  // The next `count` events in the order in which a ring would hold them.
  std::vector<MixEvent> Take(size_t count);

 private:
  struct Planned {
    uint64_t time_ns = 0;
    uint32_t shape = 0;
    uint32_t span = 0;
    uint32_t thread = 0;
    std::vector<AttributeValue> values;
  };
  using Values = std::vector<AttributeValue>;

  uint64_t Below(uint64_t end) { return random_.Next64() % end; }
  uint64_t After(uint64_t mean_ns) { return clock_ += mean_ns / 4 + Below(mean_ns * 3 / 2); }
  AttributeValue Text(std::string text);
  AttributeValue DeviceTime(uint64_t host_ns) const;
  void Start(uint32_t shape, Values values, uint64_t mean_ns);
  void Stop(Values values, uint64_t mean_ns);
  void PlanExecution();
  void PlanInputs();
  void PlanOutputs();
  void PlanMemory();
  void PlanRun();
  void PlanHardware(uint64_t from_ns, uint64_t to_ns);
  void AddHardware(uint32_t shape, uint64_t from_ns, uint64_t to_ns, Values values);
  MixEvent Emit(Planned&& planned);

  SeededRandom random_;
  const uint32_t nc_idx_;
  const Memory memory_;
  std::vector<Shape> shapes_;
  uint64_t clock_;
  uint64_t sequence_ = 0;
  uint64_t execution_ = 0;
  uint32_t spans_ = 0;
  uint32_t thread_ = 0;
  std::vector<Planned> open_;
  std::deque<Planned> planned_;
  std::deque<std::string> texts_;
};

// Appends `events` of `mix` to a builder that holds nothing yet or the same mix: `shape_ids` are
// the builder's numbers, made when empty. The error is the builder's.
absl::Status AppendMix(const EventMix& mix, std::span<const MixEvent> events,
                       std::vector<EventChunkBuilder::ShapeId>& shape_ids,
                       EventChunkBuilder& builder);

}  // namespace neurontrace
