// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aggregator/align/causal_constraint.h"

// Which events belong to one collective, message or call.
//
// They are matched by the id of their group and a sequence number in it, never by their times,
// which are what is in question. Whoever makes the events says what group and sequence are. For
// flows, messages and calls a trace carries such an id. For what the Neuron Runtime emits of
// collectives it has to be worked out, and each of these is an assumption until it has been seen to
// hold on hardware, which is why collectives are checked and not applied unless told so:
//
//  * Group. `cc_running` carries `gid`, `op_id`, `exec_id` and at times `algorithm`. Nothing public
//    says whether `gid` numbers the worker or the group of replicas, and no event lists the members
//    of a group. Workers of one job that run the same model and operation may still be in different
//    groups (tensor parallel inside, data parallel across); taken for one group, they make
//    constraints that are false. Groups have to come from outside: the job's parallel layout, or
//    the compiled model. `cc_exec_barrier` carries no id but that of its model.
//  * Sequence. `exec_id` counts the executions of one core in one process. It agrees between
//    workers only if all of them have executed equally often since they began; a warm-up on one of
//    them, or one that was restarted, shifts it. (`exec_id`, `op_id`) must not be replaced by
//    counting events, which one lost event shifts for ever.
//  * Kind. No event says whether an operation is an all-reduce, where nobody leaves before
//  everybody
//    has entered, or a permutation, where one may.
//  * Times. `cc_running` begins and ends on the device: these are taken for the moments of entering
//    and leaving. `enc_barrier`, on the host, is such a pair as well; the end of a call that only
//    enqueues a collective is not.
//
// Where one of them is wrong, constraints contradict the clocks by far more than their bounds; the
// pass counts that, and distrusts a class of which more than one in a hundred is so.
namespace neurontrace {

// What a member's part in an instance says.
enum class CausalRole : uint8_t {
  kCause,   // it began before any effect ended: a send, a broadcast's root, a reduce's member
  kEffect,  // it ended after all causes began: a receive, a broadcast's member, a reduce's root
  kBoth,    // of a barrier
};

struct CausalEvent {
  CausalClass kind = CausalClass::kBarrier;
  CausalRole role = CausalRole::kBoth;
  uint32_t clock = 0;
  uint32_t stamp_bound_ns = 0;  // see CausalStamp
  uint64_t group = 0;
  uint64_t sequence = 0;
  uint64_t member = 0;    // who says so: one that stands in no instance twice
  uint64_t enter_ns = 0;  // reference time by its clock's model
  uint64_t exit_ns = 0;
};

struct CausalMatches {
  CausalInstances instances;
  uint64_t events = 0;
  // Left out, in events but for the last:
  uint64_t reversed = 0;   // end before they begin
  uint64_t unordered = 0;  // of a member whose sequence numbers do not ascend with its own time
  uint64_t repeated = 0;   // of an instance in which a member stands twice
  uint64_t mixed = 0;  // of an instance with several kinds, or with another number of roots than 1
  uint64_t alone = 0;  // of an instance on one clock only, or without a cause or an effect
  uint64_t over_limit = 0;  // beyond limits::kCausalStampsMax
  uint64_t instances_left_out = 0;
};

// An instance of which some members are missing still holds for the others. Pure; the order of
// events does not matter, except for which of them are over the limit.
CausalMatches MatchCausalEvents(std::span<const CausalEvent> events);

}  // namespace neurontrace
