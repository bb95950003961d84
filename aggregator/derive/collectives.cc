// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/collectives.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "aggregator/timeline/model_names.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// How parts find their collective: a table leads from the ids to the open collectives with them,
// oldest first; there is nearly always only one. A part costs one look-up and no search among the
// members, because each stream remembers its latest seats. A queue by time closes collectives that
// nothing can join any more. Memory is limited by kMembersOpenMax.

// The stream decides between equal times, so that exports do not depend on the order of reading.
bool ArrivesBefore(const CollectiveMember& a, const CollectiveMember& b) {
  return std::pair(a.start_ns, a.stream) < std::pair(b.start_ns, b.stream);
}

}  // namespace

// Returns false if either bound is unknown.
bool Collective::is_last_known() const {
  if (members.size() < 2) return false;
  const CollectiveMember& before = members[members.size() - 2];
  const auto bound_ns = RecordBounds::ForOrder(before.bound, last().bound);
  return bound_ns && last().start_ns - before.start_ns > *bound_ns;
}

// Compares the first to leave with the last to arrive.
bool Collective::is_disjoint() const {
  const auto first_to_leave = std::min_element(
      members.begin(), members.end(),
      [](const CollectiveMember& a, const CollectiveMember& b) { return a.end_ns < b.end_ns; });
  const auto bound_ns = RecordBounds::ForOrder(first_to_leave->bound, last().bound);
  return bound_ns && last().start_ns > AddSaturating(first_to_leave->end_ns, *bound_ns);
}

CollectiveFinder::CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                                   CommunicatorFacts facts, Limits limits)
    : fields_(fields),
      bounds_(streams),
      communicators_(streams, std::move(facts), limits.memberships_max),
      meet_ns_(limits.meet_ns),
      absences_(streams.size()),
      seen_in_(streams.size()),
      memberships_(streams.size()) {
  extents_.reserve(streams.size());
  for (const TimelineStream& stream : streams) {
    extents_.push_back({stream.clock->ToReference(stream.description.first_timestamp_ns),
                        stream.clock->ToReference(stream.description.last_timestamp_ns)});
  }
}

// Only numbered parts can be joined. Each reason for leaving one out has its counter.
std::optional<uint64_t> CollectiveFinder::Join(const TimelineRecord& record,
                                               const ShapeFields& fields) {
  if (record.kind != RecordKind::kSpan) return std::nullopt;
  const bool is_barrier = fields.type == DerivedType::kHostBarrier;
  if (fields.type != DerivedType::kCollective && !is_barrier) return std::nullopt;
  if ((record.flags & kStartLost) != 0) {
    ++counts_.start_lost;
    return std::nullopt;
  }
  const auto exec_id = StartNumber(record, fields, DerivedField::kExecId);
  const auto op_id = StartNumber(record, fields, DerivedField::kOpId);
  // A barrier with a peer concerns two cores alone and has no common id with others.
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
  const uint64_t number = Place(key, record, fields);
  communicators_.AddMember(key.communicator, record.stream, number);
  return number;
}

// A new collective is opened only if no open one takes the part.
uint64_t CollectiveFinder::Place(const Key& key, const TimelineRecord& record,
                                 const ShapeFields& fields) {
  const auto first = first_of_.try_emplace(key, kNoSlot).first;
  uint32_t last = kNoSlot;
  size_t others = 0;
  // Oldest first: an earlier operation takes its late parts before a new one does.
  for (uint32_t slot = first->second; slot != kNoSlot; slot = open_[slot]->next) {
    if (JoinOpen(record, *open_[slot])) return open_[slot]->collective.number;
    last = slot;
    ++others;
  }
  const uint32_t slot = OpenOne(key, record, fields);
  const uint64_t number = open_[slot]->collective.number;
  (last == kNoSlot ? first->second : open_[last]->next) = slot;
  // Ids that never change would otherwise make this search quadratic.
  if (others >= kOpenPerKeyMax) {
    ++counts_.closed_early;
    Close(first->second);
  }
  CloseOldestBeyondLimit();
  return number;
}

// Uses a free slot, or adds one.
uint32_t CollectiveFinder::OpenOne(const Key& key, const TimelineRecord& record,
                                   const ShapeFields& fields) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(open_.size()));
    open_.push_back(std::make_unique<Open>());
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  Open& open = *open_[slot];
  // Close moved the former collective out, so that this one is empty.
  Collective& collective = open.collective;
  collective.number = next_number_++;
  collective.communicator = key.communicator;
  collective.kind = key.kind;
  collective.exec_id = key.exec_id;
  collective.op_id = key.op_id;
  collective.algorithm = KeptName(StartText(record, fields, DerivedField::kAlgorithm));
  open.last_end_ns = 0;
  open.next = kNoSlot;
  open.index_of.clear();
  open.indexed = 0;
  // The first member always joins, as an empty collective takes every part.
  JoinOpen(record, open);
  due_.push({open.last_end_ns, open.collective.number, slot});
  return slot;
}

void CollectiveFinder::CloseOldestBeyondLimit() {
  while (members_open_ > kMembersOpenMax && !due_.empty()) {
    const Due first = due_.top();
    due_.pop();
    // The slot was closed, and perhaps used again, since this was queued.
    if (open_[first.slot]->collective.number != first.number) continue;
    ++counts_.closed_early;
    Close(first.slot);
  }
}

// The seats are ordered by number, so the search ends at the first lower one.
size_t CollectiveFinder::IndexOf(uint32_t stream, Open& open) const {
  const auto& members = open.collective.members;
  for (const Membership& membership : memberships_[stream]) {
    if (membership.number == open.collective.number) return membership.index;
    if (membership.number < open.collective.number) return members.size();
  }
  // The stream has joined several collectives that were opened later, and perhaps this one before:
  // only then is the index worth building.
  for (; open.indexed < members.size(); ++open.indexed) {
    open.index_of.emplace(members[open.indexed].stream, open.indexed);
  }
  const auto known = open.index_of.find(stream);
  return known == open.index_of.end() ? members.size() : known->second;
}

// Inserts in order and drops the lowest; does nothing if the number is lower than all.
void CollectiveFinder::JoinMembership(uint32_t stream, const Membership& membership) {
  Memberships& memberships = memberships_[stream];
  const auto at = std::find_if(
      memberships.begin(), memberships.end(),
      [&membership](const Membership& other) { return other.number < membership.number; });
  if (at == memberships.end()) return;
  std::move_backward(at, memberships.end() - 1, memberships.end());
  *at = membership;
}

// The time decides first, then whether the core has a part already.
bool CollectiveFinder::JoinOpen(const TimelineRecord& record, Open& open) {
  auto& members = open.collective.members;
  if (!members.empty() && record.start_ns > AddSaturating(open.last_end_ns, meet_ns_)) return false;
  const bool is_open = (record.flags & kOpen) != 0;
  const size_t index = IndexOf(record.stream, open);
  if (index < members.size()) {
    CollectiveMember& own = members[index];
    // The core has left already: this part begins another operation with the same ids.
    if (record.start_ns >= own.end_ns && record.start_ns > own.start_ns) return false;
    own.end_ns = std::max(own.end_ns, record.end_ns);
    own.is_open |= is_open;
  } else {
    JoinMembership(record.stream, {open.collective.number, static_cast<uint32_t>(index)});
    members.push_back({.stream = record.stream,
                       .start_ns = record.start_ns,
                       .end_ns = record.end_ns,
                       .is_open = is_open,
                       .bound = bounds_.Keep(record)});
    ++members_open_;
  }
  // An open part ends where its stream ends, which says nothing about how long the collective
  // takes.
  open.last_end_ns = std::max(open.last_end_ns, is_open ? record.start_ns : record.end_ns);
  return true;
}

// Only cores that were members before the collective, and whose events surround it, can be missing.
void CollectiveFinder::NameAbsent(Collective& collective) {
  // If ids do not agree between cores, each part is a collective of its own, and all others would
  // count as absent from each.
  if (collective.members.size() < 2) return;
  const Communicator& about = communicators_.all()[collective.communicator];
  if (about.streams.size() == collective.members.size()) return;
  for (const CollectiveMember& member : collective.members) {
    seen_in_[member.stream] = collective.number;
  }
  for (size_t i = 0; i < about.streams.size(); ++i) {
    const uint32_t stream = about.streams[i];
    // Numbers instead of a set that is cleared for each collective.
    if (seen_in_[stream] == collective.number || about.since[i] >= collective.number) continue;
    if (extents_[stream].first_ns > collective.start_ns() ||
        extents_[stream].last_ns < collective.last_arrival_ns())
      continue;
    ++absences_[stream];
    ++collective.absent_count;
    if (collective.absent.size() < kAbsentNamedMax) collective.absent.push_back(stream);
  }
}

// The list of a key is short (kOpenPerKeyMax), so it is searched from its begin.
void CollectiveFinder::Unlink(uint32_t slot) {
  const Collective& collective = open_[slot]->collective;
  const auto first = first_of_.find(
      Key{collective.communicator, collective.kind, collective.exec_id, collective.op_id});
  uint32_t* link = &first->second;
  while (*link != slot) link = &open_[*link]->next;
  *link = open_[slot]->next;
  if (first->second == kNoSlot) first_of_.erase(first);
}

// The order is this: unlink by ids, move the collective out, free the slot, then sort and judge it.
void CollectiveFinder::Close(uint32_t slot) {
  Unlink(slot);
  Collective& collective = closed_.emplace_back(std::move(open_[slot]->collective));
  open_[slot]->collective.number = 0;
  free_.push_back(slot);
  auto& members = collective.members;
  members_open_ -= members.size();
  // Parts usually come in the order of their starts.
  if (!std::is_sorted(members.begin(), members.end(), ArrivesBefore)) {
    std::sort(members.begin(), members.end(), ArrivesBefore);
  }
  NameAbsent(collective);
  ++counts_.collectives;
  if (members.size() == 1) ++counts_.single;
  if (collective.is_disjoint()) ++counts_.disjoint;
  if (collective.absent_count > 0) ++counts_.incomplete;
}

// Entries of the queue may be old: the collective was closed since, or parts have joined it.
void CollectiveFinder::CloseBefore(uint64_t time_ns, std::vector<Collective>& done) {
  while (!due_.empty()) {
    const Due due = due_.top();
    if (time_ns != UINT64_MAX && AddSaturating(due.time_ns, meet_ns_) >= time_ns) break;
    due_.pop();
    const Open& open = *open_[due.slot];
    // Closed since this was queued.
    if (open.collective.number != due.number) continue;
    // Further parts have joined it. Updating the queue for each of them would cost more than
    // queueing it again once it is due.
    if (time_ns != UINT64_MAX && open.last_end_ns > due.time_ns) {
      due_.push({open.last_end_ns, due.number, due.slot});
      continue;
    }
    Close(due.slot);
  }
  // The common case: no element is moved.
  if (done.empty()) {
    done.swap(closed_);
    return;
  }
  done.insert(done.end(), std::make_move_iterator(closed_.begin()),
              std::make_move_iterator(closed_.end()));
  closed_.clear();
}

CollectiveCounts CollectiveFinder::counts() const {
  CollectiveCounts counts = counts_;
  counts.not_members = communicators_.not_members();
  return counts;
}

void CollectiveFinder::Take(const TimelineBatch& batch, std::vector<Collective>& done) {
  for (const TimelineRecord* record : batch.records) Join(*record);
  CloseBefore(batch.end_ns, done);
}

}  // namespace neurontrace
