// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/flow_edges.h"

#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/framework_names.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kPreparation = "kbl_exec_pre";

}  // namespace

const FlowEdges::Place* FlowEdges::Remembered::Find(const Key& key) const {
  const auto at = places_.find(key);
  return at == places_.end() ? nullptr : &at->second;
}

void FlowEdges::Remembered::Put(const Key& key, const Place& place) {
  if (!places_.insert_or_assign(key, place).second) return;
  in_order_.push_back(key);
  if (in_order_.size() <= kRememberedMax) return;
  places_.erase(in_order_.front());
  in_order_.pop_front();
}

FlowEdges::FlowEdges(const TimelineHeader& header) : header_(header) {
  std::map<WorkerIdentity, uint32_t> numbers;
  for (const TimelineStream& stream : header.streams) {
    const auto number = static_cast<uint32_t>(numbers.size());
    processes_.push_back(
        numbers.try_emplace(stream.description.identity.worker, number).first->second);
  }
}

FlowEdge FlowEdges::Edge(const Place& from, const Place& to, std::string_view type) {
  return {.in_id = from.id,
          .out_id = to.id,
          .type = type,
          .gap_ns = static_cast<int64_t>(to.start_ns) - static_cast<int64_t>(from.end_ns)};
}

absl::Status FlowEdges::TakeRow(const TimelineRecord& record, const EventRow& row,
                                const FlowEdgeTaker& take) {
  const Place place{row.id, row.start_ns, row.end_ns};
  if (row.nrta_seq_id) {
    const Key key(processes_[row.stream], *row.nrta_seq_id, 0);
    if (const Place* from = requests_.Find(key)) {
      RETURN_IF_ERROR(take(Edge(*from, place, "nrta_seq_id")));
    }
    requests_.Put(key, place);
  }
  if (row.exec_id && record.kind == RecordKind::kSpan) {
    const Key key(row.stream, *row.exec_id, 0);
    const Place* from = executions_.Find(key);
    if (record.start().event_type == kPreparation) {
      executions_.Put(key, place);
    } else if (record.start().event_type == "nc_exec_running" && from != nullptr) {
      RETURN_IF_ERROR(take(Edge(*from, place, "exec_id")));
    }
  }
  const bool is_framework =
      header_.streams[record.stream].description.identity.kind == StreamKind::kFramework;
  if (is_framework && record.kind == RecordKind::kSpan) {
    Open({record.stream, FrameworkProcessId(record), FrameworkThreadId(record)}, place);
  }
  return absl::OkStatus();
}

void FlowEdges::Open(const FrameworkRow& row, const Place& place) {
  if (open_.size() >= kRowsMax && !open_.contains(row)) return;
  std::vector<Place>& stack = open_[row];
  // What ends where this one begins is open for an arrow at that very time no more.
  while (!stack.empty() && stack.back().end_ns <= place.start_ns) stack.pop_back();
  if (stack.size() == kDepthMax) stack.erase(stack.begin());
  stack.push_back(place);
}

absl::Status FlowEdges::TakePoint(const TimelineRecord& record, const FlowEdgeTaker& take) {
  const ShapeKey* about = nullptr;
  const uint64_t* id = FindAttribute(record, KeyScope::kTop, "flow_id", &about);
  if (id == nullptr) return absl::OkStatus();
  const auto row =
      open_.find({record.stream, FrameworkProcessId(record), FrameworkThreadId(record)});
  if (row == open_.end()) return absl::OkStatus();
  const std::string text = AttributeText(*about, *id, record.names->strings);
  const Key key(record.stream, HashEventType(text), HashEventType(record.start().event_type));
  for (auto at = row->second.rbegin(); at != row->second.rend(); ++at) {
    if (at->end_ns < record.start_ns) continue;
    if (record.kind != RecordKind::kFlowStart) {
      const Place* from = arrows_.Find(key);
      if (from != nullptr) RETURN_IF_ERROR(take(Edge(*from, *at, "framework")));
    }
    if (record.kind != RecordKind::kFlowEnd) arrows_.Put(key, *at);
    break;
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
