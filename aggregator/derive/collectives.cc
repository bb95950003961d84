// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/collectives.h"

#include <algorithm>
#include <iterator>

namespace neurontrace {
namespace {

uint64_t AddSaturating(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

bool ArrivesBefore(const CollectiveMember& a, const CollectiveMember& b) {
  return std::pair(a.start_ns, a.stream) < std::pair(b.start_ns, b.stream);
}

}  // namespace

bool Collective::is_last_known() const {
  if (members.size() < 2) return false;
  const CollectiveMember& before = members[members.size() - 2];
  const auto bound_ns = RecordBounds::OfOrder(before.bound, last().bound);
  return bound_ns && last().start_ns - before.start_ns > *bound_ns;
}

bool Collective::is_disjoint() const {
  const auto first_to_leave = std::min_element(
      members.begin(), members.end(),
      [](const CollectiveMember& a, const CollectiveMember& b) { return a.end_ns < b.end_ns; });
  const uint64_t bound_ns = RecordBounds::OfOrder(first_to_leave->bound, last().bound).value_or(0);
  return last().start_ns > AddSaturating(first_to_leave->end_ns, bound_ns);
}

CollectiveFinder::CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                                   CommunicatorFacts facts, uint64_t meet_ns)
    : streams_(streams),
      fields_(fields),
      bounds_(streams),
      communicators_(streams, std::move(facts)),
      meet_ns_(meet_ns) {}

std::optional<uint64_t> CollectiveFinder::Join(const TimelineRecord& record) {
  if (record.kind != RecordKind::kSpan) return std::nullopt;
  const ShapeFields& fields = fields_.Of(*record.shape);
  const bool is_barrier = fields.type == DerivedType::kHostBarrier;
  if (fields.type != DerivedType::kCollective && !is_barrier) return std::nullopt;
  if ((record.flags & kStartLost) != 0) {
    ++counts_.start_lost;
    return std::nullopt;
  }
  const auto exec_id = StartNumber(record, fields, DerivedField::kExecId);
  const auto op_id = StartNumber(record, fields, DerivedField::kOpId);
  const bool is_of_two = is_barrier && StartNumber(record, fields, DerivedField::kPeer).has_value();
  if (!exec_id || is_of_two || (!op_id && !is_barrier)) {
    ++counts_.unnumbered;
    return std::nullopt;
  }
  const Key key{.communicator = communicators_.Find(record, fields),
                .kind = is_barrier ? CollectiveKind::kHostBarrier : CollectiveKind::kDevice,
                .exec_id = *exec_id,
                .op_id = op_id.value_or(0)};
  ++counts_.parts;
  communicators_.AddMember(key.communicator, record.stream);
  return Place(key, record, fields);
}

uint64_t CollectiveFinder::Place(const Key& key, const TimelineRecord& record,
                                 const ShapeFields& fields) {
  for (const uint64_t number : open_of_[key]) {
    if (JoinOpen(record, open_.at(number))) return number;
  }
  const uint64_t number = next_number_++;
  Open open;
  open.collective = {.number = number,
                     .communicator = key.communicator,
                     .kind = key.kind,
                     .exec_id = key.exec_id,
                     .op_id = key.op_id,
                     .algorithm = std::string(StartText(record, fields, DerivedField::kAlgorithm))};
  JoinOpen(record, open);
  open_of_[key].push_back(number);
  due_.emplace(open.last_end_ns, number);
  open_.emplace(number, std::move(open));
  if (open_of_[key].size() > kOpenPerKeyMax) {
    ++counts_.closed_early;
    Close(open_of_[key].front());
  }
  while (members_open_ > kMembersOpenMax && !due_.empty()) {
    const uint64_t first = due_.top().second;
    due_.pop();
    ++counts_.closed_early;
    Close(first);
  }
  return number;
}

bool CollectiveFinder::JoinOpen(const TimelineRecord& record, Open& open) {
  auto& members = open.collective.members;
  if (!members.empty() && record.start_ns > AddSaturating(open.last_end_ns, meet_ns_)) return false;
  const bool is_open = (record.flags & kOpen) != 0;
  const auto known = open.member_of.find(record.stream);
  if (known != open.member_of.end()) {
    CollectiveMember& own = members[known->second];
    if (record.start_ns >= own.end_ns && record.start_ns > own.start_ns) return false;
    own.end_ns = std::max(own.end_ns, record.end_ns);
    own.is_open |= is_open;
  } else {
    open.member_of.emplace(record.stream, static_cast<uint32_t>(members.size()));
    members.push_back({.stream = record.stream,
                       .start_ns = record.start_ns,
                       .end_ns = record.end_ns,
                       .is_open = is_open,
                       .bound = bounds_.Keep(record)});
    ++members_open_;
  }
  // An open part says nothing of how long the collective takes.
  open.last_end_ns = std::max(open.last_end_ns, is_open ? record.start_ns : record.end_ns);
  return true;
}

void CollectiveFinder::NameAbsent(Collective& collective) const {
  const auto& expected = communicators_.all()[collective.communicator].streams;
  if (expected.size() == collective.members.size()) return;
  std::vector<uint32_t> present;
  for (const CollectiveMember& member : collective.members) present.push_back(member.stream);
  std::sort(present.begin(), present.end());
  for (const uint32_t stream : expected) {
    if (std::binary_search(present.begin(), present.end(), stream)) continue;
    const TimelineStream& core = streams_[stream];
    if (core.clock->ToReference(core.description.first_timestamp_ns) > collective.start_ns() ||
        core.clock->ToReference(core.description.last_timestamp_ns) < collective.last_arrival_ns())
      continue;
    ++collective.absent_count;
    if (collective.absent.size() < kAbsentNamedMax) collective.absent.push_back(stream);
  }
}

void CollectiveFinder::Close(uint64_t number) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  Collective& collective = at->second.collective;
  const Key key{collective.communicator, collective.kind, collective.exec_id, collective.op_id};
  const auto numbers = open_of_.find(key);
  std::erase(numbers->second, number);
  if (numbers->second.empty()) open_of_.erase(numbers);
  members_open_ -= collective.members.size();
  std::sort(collective.members.begin(), collective.members.end(), ArrivesBefore);
  NameAbsent(collective);
  ++counts_.collectives;
  if (collective.members.size() == 1) ++counts_.single;
  if (collective.is_disjoint()) ++counts_.disjoint;
  if (collective.absent_count > 0) ++counts_.incomplete;
  closed_.push_back(std::move(collective));
  open_.erase(at);
}

void CollectiveFinder::CloseBefore(uint64_t time_ns, std::vector<Collective>& done) {
  while (!due_.empty()) {
    const auto [due_ns, number] = due_.top();
    if (time_ns != UINT64_MAX && AddSaturating(due_ns, meet_ns_) >= time_ns) break;
    due_.pop();
    const auto at = open_.find(number);
    if (at == open_.end()) continue;
    // Others have joined it meanwhile.
    if (time_ns != UINT64_MAX && at->second.last_end_ns > due_ns) {
      due_.emplace(at->second.last_end_ns, number);
      continue;
    }
    Close(number);
  }
  done.insert(done.end(), std::make_move_iterator(closed_.begin()),
              std::make_move_iterator(closed_.end()));
  closed_.clear();
}

void CollectiveFinder::Take(const TimelineBatch& batch, std::vector<Collective>& done) {
  for (const TimelineRecord* record : batch.records) Join(*record);
  CloseBefore(batch.end_ns, done);
}

}  // namespace neurontrace
