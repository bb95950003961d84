// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/execution_flows.h"

#include <map>

#include "aggregator/timeline/device_stamp.h"

namespace neurontrace {

void ExecutionFlows::Begin(const TimelineHeader& header) {
  std::map<WorkerIdentity, uint32_t> workers;
  worker_of_.clear();
  for (const TimelineStream& stream : header.streams) {
    const auto next = static_cast<uint32_t>(workers.size());
    worker_of_.push_back(
        workers.try_emplace(stream.description.identity.worker, next).first->second);
  }
}

uint64_t ExecutionFlows::Start(const Key& key) {
  while (in_order_.size() >= kOpenMax) {
    const auto [oldest, id] = in_order_.front();
    in_order_.pop_front();
    const auto it = open_.find(oldest);
    if (it != open_.end() && it->second == id) open_.erase(it);
  }
  const uint64_t id = next_id_++;
  open_[key] = id;
  in_order_.emplace_back(key, id);
  return id;
}

const std::vector<ExecutionFlows::Point>& ExecutionFlows::Of(const TimelineRecord& record) {
  points_.clear();
  if (record.kind != RecordKind::kSpan) return points_;
  if ((record.flags & kHasNrtaSeqId) != 0) {
    const Key key{worker_of_[record.stream], false, record.nrta_seq_id()};
    const auto known = open_.find(key);
    if (known == open_.end()) {
      points_.push_back({Start(key), Role::kStart, "nrta_seq_id"});
    } else {
      points_.push_back({known->second, Role::kStep, "nrta_seq_id"});
    }
  }
  const bool is_preparation = record.start().event_type == "kbl_exec_pre";
  if (!is_preparation && record.start().event_type != "nc_exec_running") return points_;
  const auto exec_key = DeviceExecutionKey(record.start());
  if (!exec_key) return points_;
  const Key key{record.stream, true, record.values[*exec_key]};
  if (is_preparation) {
    points_.push_back({Start(key), Role::kStart, "exec_id"});
  } else if (const auto known = open_.find(key); known != open_.end()) {
    points_.push_back({known->second, Role::kEnd, "exec_id"});
  }
  return points_;
}

}  // namespace neurontrace
