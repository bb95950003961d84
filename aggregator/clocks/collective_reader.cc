// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/collective_reader.h"

#include "lib/trace/event.h"

namespace neurontrace {

void CollectiveReader::Add(std::span<const DeviceEvent> events) {
  for (const DeviceEvent& event : events) {
    if (event.type != DeviceEventType::kCollective && event.type != DeviceEventType::kBarrier) {
      continue;
    }
    if (event.phase == Phase::kStart) {
      Start(event);
    } else if (event.phase == Phase::kStop) {
      Stop(event);
    }
  }
}

// Opens a part.
void CollectiveReader::Start(const DeviceEvent& event) {
  const bool is_barrier = event.type == DeviceEventType::kBarrier;
  // A barrier between two peers alone is no barrier of all.
  if (!event.exec_id || event.operation.has_value() == is_barrier) return;
  // All cores thin by the execution's number, so that they keep the same collectives.
  if (*event.exec_id % stride_ != 0) return;
  open_.Put(event, {.type = event.type,
                    .exec_id = *event.exec_id,
                    .operation = event.operation.value_or(0),
                    .sequence = event.sequence,
                    .physical = event.device_core_idx,
                    .enter_counter_ns = event.nc_timestamp_ns,
                    .enter_ns = event.timestamp_ns});
}

// Closes a part. The stride may have grown since its start, so it is checked again.
void CollectiveReader::Stop(const DeviceEvent& event) {
  std::optional<CollectivePart> part = open_.Take(event);
  if (!part || part->exec_id % stride_ != 0) return;  // its start was omitted or lost
  part->exit_counter_ns = event.nc_timestamp_ns;
  part->exit_ns = event.timestamp_ns;
  parts_.push_back(*part);
  // Doubling the stride removes about half of the parts, unless all have the same number.
  while (parts_.size() > parts_max_) {
    stride_ *= 2;
    std::erase_if(parts_, [this](const CollectivePart& p) { return p.exec_id % stride_ != 0; });
    // All are of one execution, so a stride cannot select among them.
    if (stride_ > parts_max_ && parts_.size() > parts_max_) parts_.resize(parts_max_);
  }
}

}  // namespace neurontrace
