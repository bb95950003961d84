// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/communicators.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Which events are the parts of a collective.
enum class CollectiveKind : uint8_t {
  kDevice,  // cc_running
  // enc_barrier of all cores, on the host.
  kHostBarrier,
};

// One core's part in a collective. Times are reference time.
struct CollectiveMember {
  uint32_t stream = 0;
  // When the core arrived.
  uint64_t start_ns = 0;
  // When it left; its stream's end if is_open.
  uint64_t end_ns = 0;
  bool is_open = false;        // it is not known when it left
  RecordBounds::Moment bound;  // of start_ns
};

// One collective operation of several cores. A plain value.
struct Collective {
  // Unique in one reading: the result of CollectiveFinder::Join.
  uint64_t number = 0;
  uint32_t communicator = 0;  // index into CollectiveFinder::communicators()
  CollectiveKind kind = CollectiveKind::kDevice;
  uint64_t exec_id = 0;
  // 0 for a barrier.
  uint64_t op_id = 0;
  // As KeptName shortens it; empty if the event does not name it.
  std::string algorithm;
  // In the order of arrival; never empty.
  std::vector<CollectiveMember> members;
  // Only with two members or more: streams of cores that took part in an earlier operation of the
  // communicator, whose events reach from before this one to after it, and that have no part in it.
  // The first kAbsentNamedMax of absent_count; CollectiveFinder::absences() counts all.
  std::vector<uint32_t> absent;
  uint64_t absent_count = 0;

  uint64_t start_ns() const { return members.front().start_ns; }
  uint64_t last_arrival_ns() const { return members.back().start_ns; }
  uint64_t arrival_skew_ns() const { return last_arrival_ns() - start_ns(); }
  // Returns how far the skew can be from the truth, or nullopt if that is not known.
  std::optional<uint64_t> skew_bound_ns() const {
    return RecordBounds::ForOrder(members.front().bound, members.back().bound);
  }
  const CollectiveMember& last() const { return members.back(); }
  // For an even number of members, the earlier of the two in the middle.
  const CollectiveMember& median() const { return members[(members.size() - 1) / 2]; }
  // Return how much later than the median the last one arrived, and how far that can be from the
  // truth.
  uint64_t lateness_ns() const { return last().start_ns - median().start_ns; }
  std::optional<uint64_t> lateness_bound_ns() const {
    return RecordBounds::ForOrder(median().bound, last().bound);
  }
  // Returns whether the last one certainly was the last: it followed the one before it by more than
  // the clocks' bound.
  bool is_last_known() const;
  // Returns whether two members certainly were in it at no common time. Then they are not parts of
  // one collective, or it is one that does not wait for all. False if the clocks' bound is unknown.
  bool is_disjoint() const;
};

// What was found, and why spans are in no collective. Counts collectives unless stated otherwise.
struct CollectiveCounts {
  uint64_t collectives = 0;
  // Spans that are part of one.
  uint64_t parts = 0;
  uint64_t single = 0;  // collectives of one member
  // See Collective::is_disjoint.
  uint64_t disjoint = 0;
  uint64_t incomplete = 0;  // with absent cores
  // Spans without exec_id or op_id, or between only two cores: in none.
  uint64_t unnumbered = 0;
  // Spans whose start is lost: in none.
  uint64_t start_lost = 0;
  // Closed because of a limit: parts that come later form collectives of their own.
  uint64_t closed_early = 0;
  // Cores beyond CommunicatorTable::kMembershipsMax, which are never reported as absent.
  uint64_t not_members = 0;
};

// Joins the parts of collectives over cores. A part belongs to the current operation of its
// communicator with its kind, exec_id and op_id: it begins no later than `meet_ns` after the last
// known part has ended, and its core has no part in it yet, or one that it overlaps (of another
// physical core: both are one). Times never join what ids do not.
//
// It is not public knowledge that exec_id agrees between cores
// (aggregator/clocks/collective_matcher.h). If it does not, parts stay single or come out disjoint,
// and the counts show it. docs/formats/derived.md defines the figures.
//
// Used by one thread at a time; the streams and the table must outlive it.
class CollectiveFinder {
 public:
  // The default of Limits::meet_ns. It covers the error of clocks and the time between arrivals.
  static constexpr uint64_t kMeetNs = 50'000'000;
  // Over all open collectives. Beyond, the one that is due first is closed.
  static constexpr size_t kMembersOpenMax = size_t{1} << 19;
  // Beyond, the oldest of the key is closed.
  static constexpr size_t kOpenPerKeyMax = 16;
  static constexpr size_t kAbsentNamedMax = 16;

  struct Limits {
    uint64_t meet_ns = kMeetNs;
    size_t memberships_max = CommunicatorTable::kMembershipsMax;
  };

  // `facts` distinguish jobs by more than the streams show.
  CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                   CommunicatorFacts facts, Limits limits);
  CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                   CommunicatorFacts facts = {})
      : CollectiveFinder(streams, fields, std::move(facts), Limits{}) {}

  // Returns the number of the collective that a record is a part of, or nullopt. Must be called
  // once for each record, in the timeline's order. `fields` are those of the record's shape, for
  // callers that have them.
  std::optional<uint64_t> Join(const TimelineRecord& record) {
    return Join(record, fields_.Of(*record.shape));
  }
  std::optional<uint64_t> Join(const TimelineRecord& record, const ShapeFields& fields);
  // Appends the collectives that no record starting at `time_ns` or later can join. Appends in the
  // order of closing, which is nearly that of ends.
  void CloseBefore(uint64_t time_ns, std::vector<Collective>& done);
  // Calls Join for every record, then CloseBefore with the batch's end.
  void Take(const TimelineBatch& batch, std::vector<Collective>& done);
  // Called once, after the last record.
  void Finish(std::vector<Collective>& done) { CloseBefore(UINT64_MAX, done); }

  // Returns, by stream, from how many of the closed collectives it was absent.
  std::span<const uint64_t> absences() const { return absences_; }
  std::span<const Communicator> communicators() const { return communicators_.all(); }
  uint64_t communicator_overflow() const { return communicators_.overflow(); }
  // Returns the counts so far.
  CollectiveCounts counts() const;

 private:
  // What the parts of one operation have in common.
  struct Key {
    uint32_t communicator = 0;
    CollectiveKind kind = CollectiveKind::kDevice;
    uint64_t exec_id = 0;
    uint64_t op_id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h),
                        uint64_t{key.communicator} << 8 | static_cast<uint8_t>(key.kind),
                        key.exec_id, key.op_id);
    }
  };
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  // A collective that further parts may join, in a slot that is used again.
  struct Open {
    Collective collective;  // number 0: the slot is free
    uint64_t last_end_ns = 0;
    // The next one of the same key, in the order of their starts.
    uint32_t next = kNoSlot;
    // Index of a member by stream, for the first `indexed` members; filled only if seats do not
    // suffice.
    absl::flat_hash_map<uint32_t, uint32_t> index_of;
    uint32_t indexed = 0;
  };
  // Where a stream is among the members of a collective that it joined. Number 0: nowhere.
  struct Membership {
    uint64_t number = 0;
    uint32_t index = 0;  // into its members
  };
  // The collectives with the highest numbers that a stream has joined, the highest first. Cores
  // take part in collectives in nearly one order, so that others are hardly ever asked for.
  using Memberships = std::array<Membership, 4>;
  // When an open collective is to be closed, as far as was known when this was queued.
  struct Due {
    uint64_t time_ns = 0;
    uint64_t number = 0;
    uint32_t slot = 0;
    bool operator>(const Due& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
    }
  };
  // The first and last event of a stream, in reference time.
  struct Extent {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
  };

  // Finds the open collective that the part joins, or opens one. Returns its number.
  uint64_t Place(const Key& key, const TimelineRecord& record, const ShapeFields& fields);
  // Opens a collective with the record as its first member. Returns its slot.
  uint32_t OpenOne(const Key& key, const TimelineRecord& record, const ShapeFields& fields);
  // Adds the part to `open` and returns true, or returns false if it does not belong there.
  bool JoinOpen(const TimelineRecord& record, Open& open);
  // Returns the index of the stream's member, or the number of members if it has none.
  size_t IndexOf(uint32_t stream, Open& open) const;
  // Remembers where the stream is among the members; replaces the seat with the lowest number.
  void JoinMembership(uint32_t stream, const Membership& membership);
  // Closes collectives early while there are too many members.
  void CloseOldestBeyondLimit();
  // Completes a collective, moves it to closed_ and frees its slot.
  void Close(uint32_t slot);
  // Removes the collective from the list of its key.
  void Unlink(uint32_t slot);
  // Finds the members of the communicator that have no part in the collective.
  void NameAbsent(Collective& collective);

  ShapeFieldTable& fields_;
  RecordBounds bounds_;
  CommunicatorTable communicators_;
  const uint64_t meet_ns_;
  std::vector<Extent> extents_;     // by stream
  std::vector<uint64_t> absences_;  // by stream
  // By stream: the number of the collective that NameAbsent saw it in last.
  std::vector<uint64_t> seen_in_;
  std::vector<Memberships> memberships_;  // by stream
  CollectiveCounts counts_;
  uint64_t next_number_ = 1;
  size_t members_open_ = 0;
  std::vector<std::unique_ptr<Open>> open_;  // by slot
  std::vector<uint32_t> free_;               // slots
  // Slot of the open collective of the key that began first.
  absl::flat_hash_map<Key, uint32_t> first_of_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<Collective> closed_;
};

}  // namespace neurontrace
