// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_model.h"

namespace neurontrace {

// One collective or barrier that a member is shown to leave before another, on another instance,
// has entered it.
struct OrderViolation {
  uint64_t reference_ns = 0;  // when it is shown to be left
  int64_t amount_ns = 0;      // so much before it was entered
  uint64_t bound_ns = 0;      // how far the two times can be off together
  uint64_t exec_id = 0;
  uint64_t operation = 0;  // op_id; of a barrier 0
  std::string entered_by;  // instance ids
  std::string left_by;
  friend bool operator==(const OrderViolation&, const OrderViolation&) = default;

  bool is_within_bounds() const { return static_cast<uint64_t>(amount_ns) <= bound_ns; }
};

// Whether times show what happened on several instances in an order that it can have had: nobody
// leaves a collective before everybody has entered it. It is only looked at; no clock is moved by
// it. Collectives are matched by the execution's number and op_id among the cores of one job, which
// no public word about the runtime says is right: where it is not, that shows in amounts far beyond
// the clocks' bounds, and nothing is concluded (aggregator/clocks/collective_matcher.h).
struct OrderCheck {
  std::string job;         // empty: none is known, and that of the world size is meant
  int64_t world_size = 0;  // cores in the job
  std::string event_type;  // "cc_running", "enc_barrier"
  uint64_t events = 0;     // parts in one, of all cores
  uint64_t left_out = 0;   // of these: without a partner on another instance, a number or a clock
  uint64_t instances = 0;  // collectives, or barriers, of cores on several instances
  uint64_t violated = 0;   // of these
  uint64_t beyond_bounds = 0;  // of these: by more than the clocks' bounds explain
  int64_t worst_ns = 0;        // the largest amount
  // What was compared belongs together, as far as can be told: else see words.
  bool is_conclusive = false;
  std::vector<OrderViolation> violations;  // the worst, by time; none where not conclusive
  std::string words;
  friend bool operator==(const OrderCheck&, const OrderCheck&) = default;
};

// The clocks of one machine in one boot, as one capture needs them. A plain value.
struct InstanceClock {
  std::string instance_id;
  std::string boot_id;
  ClockModel model;   // raw to reference
  ClockMap realtime;  // REALTIME to reference: what the stamps of its events go through
  // At the end of the capture: how far the reference is ahead of REALTIME, and how much further it
  // gets in every second of it.
  int64_t offset_ns = 0;
  int64_t drift_ppb = 0;
  uint64_t bound_ns = 0;             // the largest in the window
  uint64_t likely_bound_ns = 0;      // the largest of these
  uint64_t exchanges = 0;            // probes that were answered
  std::vector<std::string> sources;  // "udp", "grpc", "phc", ...: which evidence there is
};

// The clock of a device's core, while one worker had it. A plain value.
struct DeviceClock {
  WorkerIdentity worker;
  DeviceCore core;
  DeviceMap map;          // its counter to its host's REALTIME, as set for ClockMaps
  uint64_t bound_ns = 0;  // the largest where there is evidence
  uint64_t likely_bound_ns = 0;
  uint64_t executions = 0;             // whose brackets it rests on
  uint64_t sync_points = 0;            // the same
  std::vector<ClockFinding> findings;  // their x is the counter
};

// Of all devices of a capture.
struct DeviceSummary {
  uint64_t known = 0;    // cores with a map
  uint64_t unknown = 0;  // cores whose events keep the runtime's times
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  uint64_t executions = 0;
  uint64_t sync_points = 0;
  uint64_t restarts = 0;  // parts of maps but the first
};
DeviceSummary SummaryOf(const std::vector<DeviceClock>& devices);

// The clocks of a capture. An instance without evidence is not among them; its stamps are taken for
// what they are, without a bound.
struct CaptureClocks {
  std::vector<InstanceClock> instances;  // by instance id, boot id
  std::vector<DeviceClock> devices;      // by worker, core
  std::vector<OrderCheck> order;         // by job, event type; of captures alone
  ReferenceWindow window;                // the capture's; a moment, where it is about now
  ClockMaps maps;                        // the same ones' `realtime` and `map`
  uint32_t version = 0;                  // of this capture: 0: fitted while it runs, and not stored
  bool is_final = false;                 // all the evidence that helps is in it

  // nullptr: nothing is known of its clocks.
  const InstanceClock* Find(const WorkerIdentity& worker) const;
};

}  // namespace neurontrace
