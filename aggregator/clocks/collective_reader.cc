// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/collective_reader.h"

#include "trace/clock_limits.h"

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

void CollectiveReader::Start(const DeviceEvent& event) {
  const bool is_barrier = event.type == DeviceEventType::kBarrier;
  // What is between two alone is no barrier of all.
  if (!event.exec_id || event.operation.has_value() == is_barrier) {
    ++left_out_;
    return;
  }
  if (*event.exec_id % stride_ != 0) return;
  const SpanKey key{event.type, event.tracking_id};
  const CollectivePart part{.type = event.type,
                            .exec_id = *event.exec_id,
                            .operation = event.operation.value_or(0),
                            .sequence = event.sequence,
                            .physical = event.device_core_idx,
                            .enter_counter_ns = event.nc_timestamp_ns,
                            .enter_ns = event.timestamp_ns};
  if (open_.insert_or_assign(key, part).second) open_order_.push_back(key);
  while (open_order_.size() > limits::kDeviceSpansOpenMax) {
    left_out_ += open_.erase(open_order_.front());
    open_order_.pop_front();
  }
}

void CollectiveReader::Stop(const DeviceEvent& event) {
  const auto at = open_.find(SpanKey{event.type, event.tracking_id});
  if (at == open_.end()) return;  // its start was left out, or lost
  CollectivePart part = at->second;
  open_.erase(at);
  if (part.exec_id % stride_ != 0) return;
  part.exit_counter_ns = event.nc_timestamp_ns;
  part.exit_ns = event.timestamp_ns;
  parts_.push_back(part);
  while (parts_.size() > parts_max_) {
    stride_ *= 2;
    std::erase_if(parts_, [this](const CollectivePart& p) { return p.exec_id % stride_ != 0; });
    // All of one execution: there is nothing to choose by.
    if (stride_ > parts_max_ && parts_.size() > parts_max_) {
      left_out_ += parts_.size() - parts_max_;
      parts_.resize(parts_max_);
    }
  }
}

}  // namespace neurontrace
