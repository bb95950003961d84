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

enum class CollectiveKind : uint8_t {
  kDevice,       // cc_running
  kHostBarrier,  // enc_barrier of all
};

// One core's part in a collective. Reference time.
struct CollectiveMember {
  uint32_t stream = 0;
  uint64_t start_ns = 0;       // it arrived
  uint64_t end_ns = 0;         // it left
  bool is_open = false;        // it is not known when it left
  RecordBounds::Moment bound;  // of start_ns
};

// One collective operation of several cores. A plain value.
struct Collective {
  uint64_t number = 0;        // unique in one reading: what CollectiveFinder::Join gave
  uint32_t communicator = 0;  // index into CollectiveFinder::communicators()
  CollectiveKind kind = CollectiveKind::kDevice;
  uint64_t exec_id = 0;
  uint64_t op_id = 0;                     // of a barrier 0
  std::string algorithm;                  // empty: not said; what KeptName leaves
  std::vector<CollectiveMember> members;  // in the order of arrival
  // Of one with two members or more: cores that took part in an earlier operation of the
  // communicator, whose events reach from before this one to after it, and that have none of it: by
  // stream, the first kAbsentNamedMax of absent_count. CollectiveFinder::absences() counts them
  // all.
  std::vector<uint32_t> absent;
  uint64_t absent_count = 0;

  uint64_t start_ns() const { return members.front().start_ns; }
  uint64_t last_arrival_ns() const { return members.back().start_ns; }
  uint64_t arrival_skew_ns() const { return last_arrival_ns() - start_ns(); }
  // How far the skew can be from the truth; nullopt: not known.
  std::optional<uint64_t> skew_bound_ns() const {
    return RecordBounds::OfOrder(members.front().bound, members.back().bound);
  }
  const CollectiveMember& last() const { return members.back(); }
  // Of an even number the earlier of the two.
  const CollectiveMember& median() const { return members[(members.size() - 1) / 2]; }
  // How much later than the median the last one arrived, and how far that can be from the truth.
  uint64_t lateness_ns() const { return last().start_ns - median().start_ns; }
  std::optional<uint64_t> lateness_bound_ns() const {
    return RecordBounds::OfOrder(median().bound, last().bound);
  }
  // The last one is known to be so: it came after the one before it by more than the clocks' bound.
  bool is_last_known() const;
  // Some two members are known to have been in it at no common time: then these are no parts of one
  // collective, or it is one that does not wait for all. Never where the clocks' bound is unknown.
  bool is_disjoint() const;
};

struct CollectiveCounts {
  uint64_t collectives = 0;
  uint64_t parts = 0;         // spans that are in one
  uint64_t single = 0;        // collectives of one member
  uint64_t disjoint = 0;      // see Collective::is_disjoint
  uint64_t incomplete = 0;    // with absent cores
  uint64_t unnumbered = 0;    // spans without exec_id or op_id, or between two alone: in none
  uint64_t start_lost = 0;    // spans of which only the stop is known: in none
  uint64_t closed_early = 0;  // beyond a limit below: parts that come later are on their own
  uint64_t not_members = 0;   // cores beyond CommunicatorTable::kMembershipsMax: never absent
};

// Joins the parts of collectives over cores. A part belongs to the operation of its communicator
// with its kind, exec_id and op_id that is under way: it begins not later than `meet_ns` after the
// last part known has ended, and its core has no part in it yet, or one that it overlaps (of
// another physical core: both are one). Times never make a pair that ids do not.
//
// That exec_id agrees between cores is not public knowledge
// (aggregator/clocks/collective_matcher.h): where it does not, parts stay single or come out
// disjoint, and the counts say so.
//
// One thread at a time; the streams and the table must outlive it.
class CollectiveFinder {
 public:
  static constexpr uint64_t kMeetNs = 50'000'000;
  static constexpr size_t kMembersOpenMax = size_t{1} << 19;  // the collective due first is closed
  static constexpr size_t kOpenPerKeyMax = 16;                // the same, the oldest
  static constexpr size_t kAbsentNamedMax = 16;

  struct Limits {
    uint64_t meet_ns = kMeetNs;
    size_t memberships_max = CommunicatorTable::kMembershipsMax;
  };

  CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                   CommunicatorFacts facts, Limits limits);
  CollectiveFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                   CommunicatorFacts facts = {})
      : CollectiveFinder(streams, fields, std::move(facts), Limits{}) {}

  // The number of the collective that a record is a part of; nullopt: of none. To be called once
  // for each record, in their order. `fields` are those of its shape, where they are at hand.
  std::optional<uint64_t> Join(const TimelineRecord& record) {
    return Join(record, fields_.Of(*record.shape));
  }
  std::optional<uint64_t> Join(const TimelineRecord& record, const ShapeFields& fields);
  // Appends the collectives that nothing can join any more which begins at `time_ns` or later.
  void CloseBefore(uint64_t time_ns, std::vector<Collective>& done);
  // Join for every record, then CloseBefore.
  void Take(const TimelineBatch& batch, std::vector<Collective>& done);
  void Finish(std::vector<Collective>& done) { CloseBefore(UINT64_MAX, done); }

  // By stream: of the collectives that are closed, how many it was absent from.
  std::span<const uint64_t> absences() const { return absences_; }
  std::span<const Communicator> communicators() const { return communicators_.all(); }
  uint64_t communicator_overflow() const { return communicators_.overflow(); }
  CollectiveCounts counts() const;
  // Not given out yet.

 private:
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
  struct Open {
    Collective collective;  // number 0: the slot is free
    uint64_t last_end_ns = 0;
    uint32_t next = kNoSlot;  // of the same key, in the order of their starts
    // Index of a member by stream: of the first `indexed`, where seats did not say it.
    absl::flat_hash_map<uint32_t, uint32_t> index_of;
    uint32_t indexed = 0;
  };
  // Where a stream is in a collective that it has joined. Number 0: in none.
  struct Seat {
    uint64_t number = 0;
    uint32_t index = 0;  // into its members
  };
  // Of the collectives that a stream has joined those of the highest numbers, the highest first.
  // Cores take part in collectives in nearly one order: others are hardly ever asked for.
  using Seats = std::array<Seat, 4>;
  struct Due {
    uint64_t time_ns = 0;
    uint64_t number = 0;
    uint32_t slot = 0;
    bool operator>(const Due& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
    }
  };
  // What is known of a stream's events, in reference time.
  struct Extent {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
  };

  uint64_t Place(const Key& key, const TimelineRecord& record, const ShapeFields& fields);
  uint32_t OpenOne(const Key& key, const TimelineRecord& record, const ShapeFields& fields);
  // Joins the part where it belongs to `open`.
  bool JoinOpen(const TimelineRecord& record, Open& open);
  // Of the stream's member; the number of members where it has none.
  size_t IndexOf(uint32_t stream, Open& open) const;
  void TakeSeat(uint32_t stream, const Seat& seat);
  void CloseBeyondLimit();
  void Close(uint32_t slot);
  void Unlink(uint32_t slot);
  void NameAbsent(Collective& collective);

  ShapeFieldTable& fields_;
  RecordBounds bounds_;
  CommunicatorTable communicators_;
  const uint64_t meet_ns_;
  std::vector<Extent> extents_;     // by stream
  std::vector<uint64_t> absences_;  // by stream
  std::vector<uint64_t> seen_in_;   // by stream: the number of the collective looked at last
  std::vector<Seats> seats_;        // by stream
  CollectiveCounts counts_;
  uint64_t next_number_ = 1;
  size_t members_open_ = 0;
  std::vector<std::unique_ptr<Open>> open_;      // by slot
  std::vector<uint32_t> free_;                   // slots
  absl::flat_hash_map<Key, uint32_t> first_of_;  // slot of the one that began first
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<Collective> closed_;
};

}  // namespace neurontrace
