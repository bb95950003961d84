// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Which events belong to one collective or barrier, and whether their times can be right.
//
// Events are matched by the id of their group and a sequence number in it, never by their times,
// because the times are what is being checked. Nothing public says how the Neuron Runtime numbers
// what it emits, so each of these is an assumption until it has been seen to hold on hardware:
//
//  * Group. `cc_running` carries `gid`, `op_id`, `exec_id` and at times `algorithm`. Nothing says
//    whether `gid` numbers the worker or the group of replicas, and no event lists the members of a
//    group. Workers of one job that run the same model and operation may still be in different
//    groups (tensor parallel inside, data parallel across); compared as one group, they seem to
//    leave before others enter. `cc_exec_barrier` carries no id but that of its model.
//  * Sequence. `exec_id` counts the executions of one core in one process. It agrees between
//    workers only if all of them have executed equally often since they began; a warm-up on one of
//    them, or a restart of one, shifts it. Counting events instead of (`exec_id`, `op_id`) would be
//    worse: one lost event shifts that count for ever.
//  * Kind. No event says whether an operation is an all-reduce, which nobody leaves before
//    everybody has entered, or a permutation, which one may.
//  * Times. `cc_running` begins and ends on the device: these are taken for the moments of entering
//    and leaving. `enc_barrier`, on the host, is such a pair as well; the end of a call that only
//    enqueues a collective is not.
//
// If one of them is wrong, events contradict the clocks by far more than the clocks' bounds; the
// order checker concludes nothing when more than one collective in a hundred does so.
namespace neurontrace {

// One member's part in a collective or barrier.
struct CollectiveEvent {
  uint32_t clock = 0;     // index of the instance whose clock stamped it
  uint32_t bound_ns = 0;  // how far either time can be off
  uint64_t group = 0;
  uint64_t sequence = 0;
  uint64_t member = 0;    // unique within (group, sequence)
  uint64_t enter_ns = 0;  // reference time
  uint64_t exit_ns = 0;
};

// Later times are not compared: differences of times up to this fit into 64 bits.
inline constexpr uint64_t kCollectiveTimeMaxNs = uint64_t{1} << 62;

// Returns the collectives in which members on several clocks took part, ordered by group and
// sequence number. Reorders `events`, to which the spans refer. A collective with missing members
// is returned with those that exist.
//
// Omits events that end before they begin and members whose sequence numbers do not ascend with
// their own time. Omits collectives that list a member twice, are on one clock only, or have a time
// beyond kCollectiveTimeMaxNs. Pure; the order of `events` makes no difference.
std::vector<std::span<const CollectiveEvent>> MatchCollectives(
    std::vector<CollectiveEvent>& events);

// A member appears to leave before a member on another clock has entered.
struct EarlyExit {
  CollectiveEvent entered;  // the last to enter
  CollectiveEvent left;     // the first to leave
  int64_t amount_ns = 0;    // entered - left: above 0

  bool is_within_bounds() const {
    return static_cast<uint64_t>(amount_ns) <= uint64_t{entered.bound_ns} + left.bound_ns;
  }
};

// Returns the widest early exit of a collective, comparing only times of different clocks; nullopt
// if everybody left after everybody had entered.
std::optional<EarlyExit> FindEarlyExit(std::span<const CollectiveEvent> members);

}  // namespace neurontrace
