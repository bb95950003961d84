// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/link_collector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "aggregator/timeline/model_names.h"
#include "aggregator/view/span_answer.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// One pass, without looking ahead: every record that is part of a chain or of a collective, and
// every span of a framework's file, is kept as a node until the reading ends. Only then is it known
// which of them belong to the event. What is kept is limited by kViewLinkNodesMax.

constexpr std::string_view kPart = "execution_part";
constexpr std::string_view kArrow = "arrow";

bool Overlap(const LinkedEvent& a, const LinkedEvent& b) {
  return a.start_ns <= b.end_ns && b.start_ns <= a.end_ns;
}

}  // namespace

std::string_view NameOf(LinkDirection direction) {
  switch (direction) {
    case LinkDirection::kUpstream:
      return "upstream";
    case LinkDirection::kDownstream:
      return "downstream";
    case LinkDirection::kPeer:
      break;
  }
  return "peer";
}

void LinkedEvent::WriteMembers(JsonWriter& json) const {
  json.Member("id", id.ToString())
      .Member("stream", id.stream)
      .Member("row", row)
      .Member("row_name", row_name)
      .Member("name", name)
      .Member("start_ns", fmt::format("{}", start_ns))
      .Member("end_ns", fmt::format("{}", end_ns))
      .Member("depth", depth);
}

LinkCollector::LinkCollector(Scope scope, const EventId& event, std::optional<uint64_t> exec_id)
    : ViewCollector(/*has_arrows=*/scope == Scope::kCauses),
      scope_(scope),
      event_(event),
      exec_id_(exec_id) {}

absl::Status LinkCollector::Begin(const TimelineHeader& header) {
  BeginRows(header);
  attributes_.Begin(header);
  if (scope_ == Scope::kCauses) links_.emplace(header.streams, header.framework_names);
  if (scope_ == Scope::kCollective) collectives_.emplace(header.streams, fields_);
  return absl::OkStatus();
}

bool LinkCollector::IsEvent(const TimelineRecord& record) const {
  const uint32_t stream = header_->streams[record.stream].description.number;
  return !own_node_ && stream == event_.stream && record.raw_start_ns() == event_.raw_start_ns &&
         EventId::Of(record, stream, attributes_.NameOf(record)) == event_;
}

std::optional<uint32_t> LinkCollector::AddNode(const TimelineRecord& record,
                                               const Placement& placement, uint8_t depth) {
  if (nodes_.size() >= limits::kViewLinkNodesMax) {
    ++events_not_kept_;
    return std::nullopt;
  }
  const uint32_t stream = header_->streams[record.stream].description.number;
  const ShapeFields& fields = fields_.Of(*record.shape);
  Node node{.stream = record.stream,
            .row = placement.row,
            .flags = record.flags,
            .is_span = record.kind == RecordKind::kSpan};
  const std::string_view name = attributes_.NameOf(record);
  // Names in files may be of any length, and many are kept.
  node.event.name = KeptName(name);
  node.event.id = EventId::Of(record, stream, name);
  node.event.start_ns = record.start_ns;
  node.event.end_ns = record.end_ns;
  node.event.depth = depth;
  node.event.type = fields.type;
  node.event.exec_id = StartNumber(record, fields, DerivedField::kExecId);
  if ((record.flags & kHasNrtaSeqId) != 0) node.nrta_seq_id = record.nrta_seq_id();
  nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(nodes_.size() - 1);
}

absl::Status LinkCollector::WriteEvent(const TimelineRecord& record, uint64_t number,
                                       const Placement& placement) {
  if (placement.row >= levels_.size()) levels_.resize(placement.row + 1);
  const uint8_t depth = levels_[placement.row].Place(record.start_ns, record.end_ns);
  const ShapeFields& fields = fields_.Of(*record.shape);
  const bool is_event = IsEvent(record);
  // Copied, because AddNode must not depend on how long the finder keeps them.
  std::vector<LinkPoint> points;
  if (links_) points = links_->Of(record);
  std::optional<uint64_t> collective;
  if (collectives_) collective = collectives_->Join(record, fields);
  const bool is_framework =
      scope_ == Scope::kCauses && kind_of(record.stream) == StreamKind::kFramework;
  const bool is_executing = scope_ == Scope::kCauses && exec_id_.has_value() &&
                            header_->streams[record.stream].description.number == event_.stream &&
                            StartNumber(record, fields, DerivedField::kExecId) == exec_id_;
  if (!is_event && !is_framework && !is_executing && points.empty() && !collective) {
    return absl::OkStatus();
  }
  const std::optional<uint32_t> node = AddNode(record, placement, depth);
  if (!node) return absl::OkStatus();
  if (is_event) {
    own_node_ = node;
    own_number_ = number;
    own_collective_number_ = collective.value_or(0);
  }
  if (is_framework) node_of_number_.emplace(number, *node);
  if (is_executing) executing_.push_back(*node);
  for (const LinkPoint& point : points) {
    if (parts_.size() >= limits::kViewLinkNodesMax) {
      ++events_not_kept_;
      break;
    }
    parts_.push_back({point, *node});
  }
  if (collective) members_.emplace_back(*collective, *node);
  return absl::OkStatus();
}

// Both ends of an arrow may be in earlier batches than the finding.
void LinkCollector::PlaceArrows() {
  for (const ArrowFinding& finding : arrows_.findings()) {
    if (starts_.size() + waiting_.size() + arrow_list_.size() >= limits::kViewLinkNodesMax) {
      ++events_not_kept_;
      continue;
    }
    switch (finding.kind) {
      case ArrowFinding::Kind::kStart:
        starts_.emplace(finding.id, finding.from.number);
        break;
      case ArrowFinding::Kind::kWaiting:
        waiting_.emplace(finding.id, finding.to.number);
        break;
      case ArrowFinding::Kind::kArrow:
        starts_.erase(finding.id);
        waiting_.erase(finding.waiting_id);
        arrow_list_.push_back({finding.from.number, finding.to.number});
        break;
    }
  }
  arrows_.findings().clear();
}

absl::Status LinkCollector::EndBatch(const TimelineBatch& batch) {
  if (!collectives_) return absl::OkStatus();
  collectives_->CloseBefore(batch.end_ns, closed_);
  TakeClosed();
  return absl::OkStatus();
}

void LinkCollector::TakeClosed() {
  for (Collective& collective : closed_) {
    if (own_collective_number_ != 0 && collective.number == own_collective_number_) {
      own_collective_ = std::move(collective);
    }
  }
  closed_.clear();
}

absl::Status LinkCollector::Finish(ExportSummary&) {
  if (collectives_) {
    collectives_->Finish(closed_);
    TakeClosed();
  }
  if (!own_node_) return absl::OkStatus();
  found_.event = EventOf(*own_node_);
  if (scope_ == Scope::kCauses) {
    AddChains();
    AddParts();
    AddArrows();
    AddMissing();
  } else if (scope_ == Scope::kCollective) {
    AddCollective();
  }
  return absl::OkStatus();
}

void LinkCollector::AddLink(std::string_view kind, LinkDirection direction, bool is_direct,
                            uint32_t node) {
  if (!HasLink(kind, direction)) kinds_.emplace_back(kind, direction);
  if (found_.links.size() >= limits::kViewLinksMax) {
    ++found_.more;
    return;
  }
  found_.links.push_back({kind, direction, is_direct, EventOf(node)});
}

LinkedEvent LinkCollector::EventOf(uint32_t node) {
  LinkedEvent event = nodes_[node].event;
  const ExportRow& row = rows_.row(nodes_[node].row);
  event.row_name = row.name;
  event.row = ViewRowId(rows_.process(row.process).label, row.name);
  return event;
}

bool LinkCollector::HasLink(std::string_view kind, LinkDirection direction) const {
  return std::ranges::find(kinds_, std::pair(kind, direction)) != kinds_.end();
}

void LinkCollector::AddChains() {
  // The event is in few chains, and one pass over the parts finds each.
  std::vector<Part> own_parts;
  for (const Part& part : parts_) {
    if (part.node == *own_node_) own_parts.push_back(part);
  }
  for (const Part& part : own_parts) AddChain(part);
}

// A chain of calls or of an execution has up to three steps, by role; a sequence has as many as it
// has members, in the order of time, each connected to its neighbours alone. Members of one step
// are not connected to each other.
void LinkCollector::AddChain(const Part& own) {
  struct Member {
    uint32_t node = 0;
    size_t step = 0;
  };
  std::vector<Member> members;
  size_t own_step = 0;
  for (const Part& part : parts_) {
    if (part.point.id != own.point.id) continue;
    const bool is_sequence = part.point.kind == LinkKind::kSequence;
    const size_t step = is_sequence ? members.size() : static_cast<size_t>(part.point.role);
    if (part.node == own.node) own_step = step;
    members.push_back({part.node, step});
  }
  const std::string_view kind = FrameworkLinks::NameOf(own.point.kind);
  for (const Member& member : members) {
    if (member.step == own_step) continue;
    const auto [low, high] = std::minmax(member.step, own_step);
    const bool is_direct = std::ranges::none_of(members, [low = low, high = high](const Member& m) {
      return m.step > low && m.step < high;
    });
    if (!is_direct && own.point.kind == LinkKind::kSequence) continue;
    AddLink(kind, member.step < own_step ? LinkDirection::kUpstream : LinkDirection::kDownstream,
            is_direct, member.node);
  }
}

// The spans that ran as a part of an execution have its exec_id, on its core and at its time.
void LinkCollector::AddParts() {
  const Node& own = this->own();
  const DerivedType type = own.event.type;
  if (!own.event.exec_id || type == DerivedType::kPrepare || type == DerivedType::kExecute) return;
  const bool is_execution = type == DerivedType::kRunning;
  bool has_other = false;
  for (const uint32_t node : executing_) {
    const LinkedEvent& other = nodes_[node].event;
    const bool is_of_runtime =
        other.type == DerivedType::kPrepare || other.type == DerivedType::kExecute;
    if (node == *own_node_ || is_of_runtime ||
        (other.type == DerivedType::kRunning) == is_execution) {
      continue;
    }
    has_other = true;
    if (!Overlap(own.event, other)) continue;
    AddLink(kPart, is_execution ? LinkDirection::kDownstream : LinkDirection::kUpstream, true,
            node);
  }
  if (is_execution || type != DerivedType::kCollective) return;
  if (HasLink(kPart, LinkDirection::kUpstream)) return;
  found_.unlinked.push_back(
      has_other ? fmt::format("the nc_exec_running with its exec_id {} run at other times on its "
                              "core: ids and times contradict each other",
                              *own.event.exec_id)
                : fmt::format("no nc_exec_running with its exec_id {} was found on its core",
                              *own.event.exec_id));
}

void LinkCollector::AddArrows() {
  for (const Arrow& arrow : arrow_list_) {
    if (arrow.from != own_number_ && arrow.to != own_number_) continue;
    const bool is_from = arrow.from == own_number_;
    const auto other = node_of_number_.find(is_from ? arrow.to : arrow.from);
    if (other == node_of_number_.end()) continue;  // counted in events_not_kept_
    AddLink(kArrow, is_from ? LinkDirection::kDownstream : LinkDirection::kUpstream, true,
            other->second);
  }
  const auto count_of = [this](const absl::flat_hash_map<uint64_t, uint64_t>& ends) {
    return std::count_if(ends.begin(), ends.end(),
                         [this](const auto& end) { return end.second == own_number_; });
  };
  if (const auto lost = count_of(starts_); lost > 0) {
    found_.unlinked.push_back(
        fmt::format("{} arrows of its file begin here and have no end in what was read", lost));
  }
  if (const auto lost = count_of(waiting_); lost > 0) {
    found_.unlinked.push_back(
        fmt::format("{} arrows of its file end here and have no start in what was read", lost));
  }
}

// Lists what an event of its type should be connected to, and is not.
void LinkCollector::AddMissing() {
  const Node& own = this->own();
  const std::string_view execution = FrameworkLinks::NameOf(LinkKind::kExecution);
  const auto report = [this](std::string text) { found_.unlinked.push_back(std::move(text)); };
  if ((own.flags & kStartLost) != 0) {
    return report("its begin was lost: nothing can be linked to it");
  }
  const bool has_up = HasLink(execution, LinkDirection::kUpstream);
  const bool has_down = HasLink(execution, LinkDirection::kDownstream);
  const std::string id = own.event.exec_id ? fmt::format(" with exec_id {}", *own.event.exec_id)
                                           : std::string(", as it has no exec_id");
  if (own.event.type == DerivedType::kExecute && !has_down) {
    report("no kbl_exec_pre lies within the call on its thread: its execution is not known");
  } else if (own.event.type == DerivedType::kPrepare && !has_down) {
    report(fmt::format("no nc_exec_running{} was found on its core after it", id));
  } else if (own.event.type == DerivedType::kRunning && !has_up) {
    report(fmt::format("no kbl_exec_pre{} was found on its core before it", id));
  }
  const std::string_view sequence = FrameworkLinks::NameOf(LinkKind::kSequence);
  const bool has_sequence =
      HasLink(sequence, LinkDirection::kUpstream) || HasLink(sequence, LinkDirection::kDownstream);
  if (own.nrta_seq_id && own.is_span && !has_sequence) {
    report(fmt::format("no other span of its worker has its nrta_seq_id {}", *own.nrta_seq_id));
  }
  // Calls within calls are parts of the outer one, which has the link.
  const std::string_view call = FrameworkLinks::NameOf(LinkKind::kFrameworkCall);
  const bool has_files = std::ranges::any_of(header_->streams, [](const TimelineStream& stream) {
    return stream.description.identity.kind == StreamKind::kFramework;
  });
  const bool is_call = kind_of(own.stream) == StreamKind::kNeuronCore && own.is_span &&
                       rows_.row(own.row).source == RowSource::kRuntime && own.event.depth == 0;
  if (has_files && is_call && !HasLink(call, LinkDirection::kUpstream)) {
    report("no operation in the framework's traces of its process contains this call");
  }
}

// Everybody waits for the last to arrive, so that later arrivals are upstream.
void LinkCollector::AddCollective() {
  const auto report = [this](std::string text) { found_.unlinked.push_back(std::move(text)); };
  if (!own_collective_) {
    return report(
        "it has no exec_id and op_id that other ranks share, or names one peer alone: its "
        "collective is not known");
  }
  const Collective& collective = *own_collective_;
  const auto own =
      std::ranges::find(collective.members, nodes_[*own_node_].stream, &CollectiveMember::stream);
  absl::flat_hash_map<uint32_t, uint32_t> node_of_stream;
  for (const auto& [number, node] : members_) {
    if (number == collective.number) node_of_stream.try_emplace(nodes_[node].stream, node);
  }
  // The latest first: they are what was waited for.
  for (auto member = collective.members.rbegin(); member != collective.members.rend(); ++member) {
    const auto node = node_of_stream.find(member->stream);
    if (own == collective.members.end() || member->stream == own->stream ||
        node == node_of_stream.end()) {
      continue;
    }
    const auto bound_ns = RecordBounds::ForOrder(own->bound, member->bound);
    const uint64_t apart_ns =
        std::max(own->start_ns, member->start_ns) - std::min(own->start_ns, member->start_ns);
    LinkDirection direction = LinkDirection::kPeer;
    if (bound_ns && apart_ns > *bound_ns) {
      direction =
          member->start_ns > own->start_ns ? LinkDirection::kUpstream : LinkDirection::kDownstream;
    }
    AddLink(kCollectiveLink, direction, true, node->second);
  }
  if (collective.members.size() == 1) {
    report(fmt::format("no other rank has an event with its exec_id {} and op_id {}",
                       collective.exec_id, collective.op_id));
  }
  if (collective.absent_count > 0) {
    std::vector<std::string> names;
    for (const uint32_t stream : collective.absent) {
      const TimelineStream& absent = header_->streams[stream];
      names.push_back(absent.rank.label.empty() ? ToString(absent.description.identity)
                                                : absent.rank.label);
    }
    report(fmt::format("{} ranks of its group have no event in it: {}{}", collective.absent_count,
                       fmt::join(names, ", "),
                       names.size() < collective.absent_count ? ", …" : ""));
  }
  if (collective.is_disjoint()) {
    report(
        "members with its ids were in it at no common time: ids and times contradict each other");
  }
}

}  // namespace neurontrace
