// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/flow_edges.h"

#include <fmt/format.h>

#include <utility>

#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns the row's element of flow_id: rows of one process with an equal element belong together.
// A sequence has the runtime's own number, the others have numbers of FrameworkLinks. Prefixed by
// kind, because numbers of different kinds may be equal.
std::string FlowId(const LinkPoint& point, const TimelineRecord& record) {
  switch (point.kind) {
    case LinkKind::kSequence:
      return fmt::format("nrta:{}", record.nrta_seq_id());
    case LinkKind::kFrameworkCall:
      return fmt::format("call:{}", point.id);
    case LinkKind::kExecution:
      break;
  }
  return fmt::format("exec:{}", point.id);
}

}  // namespace

const FlowEdges::Place* FlowEdges::Remembered::Find(const Key& key) const {
  const auto at = places_.find(key);
  return at == places_.end() ? nullptr : &at->second;
}

void FlowEdges::Remembered::Put(const Key& key, const Place& place) {
  // A known key keeps its place in the order: it will be forgotten no later than a new one.
  if (!places_.insert_or_assign(key, place).second) return;
  in_order_.push_back(key);
  if (in_order_.size() <= kRememberedMax) return;
  places_.erase(in_order_.front());
  in_order_.pop_front();
}

FlowEdges::FlowEdges(const TimelineHeader& header)
    : header_(header), links_(header.streams, header.framework_names) {}

FlowEdge FlowEdges::Edge(const Place& from, const Place& to, std::string_view type) {
  return {.in_id = from.id,
          .out_id = to.id,
          .type = type,
          .gap_ns = static_cast<int64_t>(to.start_ns) - static_cast<int64_t>(from.end_ns)};
}

FlowEdges::Remembered& FlowEdges::RememberedOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kFrameworkCall:
      return operations_;
    case LinkKind::kSequence:
      return sequences_;
    case LinkKind::kExecution:
      break;
  }
  return executions_;
}

// An operation leads to each of its calls and a preparation to each physical core's part, while the
// spans of a sequence follow each other.
absl::Status FlowEdges::EmitLink(const LinkPoint& point, const Place& place,
                                 const FlowEdgeSink& take) {
  Remembered& remembered = RememberedOf(point.kind);
  // Ids of chains are unique in the export, so that one part of the key is enough.
  const Key key(0, point.id, 0);
  if (point.role != LinkRole::kStart) {
    const Place* from = remembered.Find(key);
    if (from == nullptr) {
      ++forgotten_;
    } else {
      RETURN_IF_ERROR(take(Edge(*from, place, FrameworkLinks::NameOf(point.kind))));
    }
  }
  // Whether the next edge of the chain starts at this row instead of at the chain's first.
  const bool continues = point.role == LinkRole::kStep && point.kind != LinkKind::kFrameworkCall;
  if (point.role == LinkRole::kStart || continues) remembered.Put(key, place);
  return absl::OkStatus();
}

// The edges of chains are known at once. Those of a framework file's arrows are found when a span
// and a point meet, which may be in a later row.
absl::Status FlowEdges::AddRow(const TimelineRecord& record, EventRow& row,
                               const FlowEdgeSink& take) {
  const Place place{row.id, row.start_ns, row.end_ns};
  for (const LinkPoint& point : links_.Of(record)) {
    row.flow_ids.push_back(FlowId(point, record));
    RETURN_IF_ERROR(EmitLink(point, place, take));
  }
  const bool is_framework =
      header_.streams[record.stream].description.identity.kind == StreamKind::kFramework;
  if (!is_framework || record.kind != RecordKind::kSpan) return absl::OkStatus();
  arrows_.AddSpan(
      FrameworkRow(record),
      {.number = static_cast<uint64_t>(row.id), .start_ns = row.start_ns, .end_ns = row.end_ns});
  return EmitArrows(take);
}

// A hash instead of a row number, because tables have no rows of a viewer. Equal hashes of
// different threads would only make a wrong arrow possible.
uint64_t FlowEdges::FrameworkRow(const TimelineRecord& record) {
  return HashEventType(fmt::format("{}\n{}\n{}", record.stream, FrameworkProcessId(record),
                                   FrameworkThreadId(record)));
}

void FlowEdges::CollectPoint(const TimelineRecord& record) {
  arrows_.AddPoint(FrameworkRow(record), record);
}

absl::Status FlowEdges::EndBatch(const FlowEdgeSink& take) {
  arrows_.EndBatch();
  return EmitArrows(take);
}

// Findings that are no complete arrow matter only to formats that draw points.
absl::Status FlowEdges::EmitArrows(const FlowEdgeSink& take) {
  const auto place_of = [](const ArrowSpan& span) {
    return Place{static_cast<int64_t>(span.number), span.start_ns, span.end_ns};
  };
  for (const ArrowFinding& found : std::exchange(arrows_.findings(), {})) {
    if (found.kind != ArrowFinding::Kind::kArrow) continue;
    RETURN_IF_ERROR(take(Edge(place_of(found.from), place_of(found.to), "framework")));
  }
  return absl::OkStatus();
}

std::vector<std::string> FlowEdges::Warnings() const {
  std::vector<std::string> warnings = links_.counts().Warnings();
  for (std::string& warning : arrows_.Warnings()) warnings.push_back(std::move(warning));
  if (forgotten_ > 0) {
    warnings.push_back(fmt::format(
        "{} arrows are missing from Flow, because too many of them were open at once", forgotten_));
  }
  return warnings;
}

}  // namespace neurontrace
