// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/clock_model.h"

namespace neurontrace {

// A collective or barrier that one member appears to leave before another, on another instance, has
// entered it. Impossible in truth, so it measures how wrong the clocks are. Produced by
// OrderChecker (aggregator/clocks/order_checker.h) and stored with the capture's clocks.
struct OrderViolation {
  uint64_t reference_ns = 0;  // when it appears to be left
  int64_t amount_ns = 0;      // how long before it was entered
  uint64_t bound_ns = 0;      // how far both times together can be off
  uint64_t exec_id = 0;
  uint64_t operation = 0;  // op_id; 0 for a barrier
  std::string entered_by;  // instance ids
  std::string left_by;
  friend bool operator==(const OrderViolation&, const OrderViolation&) = default;

  // Returns whether the clocks' own uncertainty explains the violation, so that it is no proof of a
  // wrong clock.
  bool is_within_bounds() const { return static_cast<uint64_t>(amount_ns) <= bound_ns; }
};

// Checks whether the times of events on several instances are in an order that can have happened:
// nobody leaves a collective before everybody has entered it. Clocks are only checked by it and
// never moved (docs/decisions/0037).
//
// Collectives are matched by execution number and op_id among the cores of one job. No public
// document about the runtime guarantees that this is right. If it is wrong, amounts are far beyond
// the clocks' bounds, and nothing is concluded (aggregator/clocks/collective_matcher.h).
struct OrderCheck {
  std::string job;             // empty: unknown; jobs are then told apart by world size
  int64_t world_size = 0;      // cores in the job
  std::string event_type;      // "cc_running", "enc_barrier"
  uint64_t events = 0;         // parts of collectives, over all cores
  uint64_t left_out = 0;       // of the events, those without partner, number or clock
  uint64_t instances = 0;      // collectives or barriers across several instances
  uint64_t violated = 0;       // of those collectives
  uint64_t beyond_bounds = 0;  // of the violated, by more than the bounds explain
  int64_t worst_ns = 0;        // the largest amount
  // Whether what was compared belongs together, as far as can be judged; otherwise see `words`.
  // False if nothing could be compared, too.
  bool is_conclusive = false;
  std::vector<OrderViolation> violations;  // the worst, by time; empty if inconclusive
  // The judgement as a sentence, for people.
  std::string words;
  friend bool operator==(const OrderCheck&, const OrderCheck&) = default;
};

// The clocks of one machine in one boot, as a capture needs them. A plain value. Made by
// FitInstanceClock (aggregator/align/instance_clock.h).
struct InstanceClock {
  std::string instance_id;
  std::string boot_id;
  ClockModel model;   // raw to reference
  ClockMap realtime;  // REALTIME to reference: maps the timestamps of its events
  // At the end of the capture: reference minus REALTIME, and by how many ns that grows per second.
  // Both are for display; events go through `realtime`.
  int64_t offset_ns = 0;
  int64_t drift_ppb = 0;
  // kNoBound if any part of the window is without a bound.
  uint64_t bound_ns = 0;             // the largest in the window
  uint64_t likely_bound_ns = 0;      // the largest likely bound in the window
  uint64_t exchanges = 0;            // answered probes
  std::vector<std::string> sources;  // kinds of evidence: "udp", "grpc", "phc", ...
};

// The clock of a device core while one worker used it. A plain value. `bound_ns` and
// `likely_bound_ns` are in ns of the host's REALTIME, without the host's own bound.
struct DeviceClock {
  WorkerIdentity worker;
  DeviceCore core;
  DeviceMap map;          // its counter to its host's REALTIME
  uint64_t bound_ns = 0;  // the largest where there is evidence
  uint64_t likely_bound_ns = 0;
  uint64_t executions = 0;             // whose brackets were used
  uint64_t sync_points = 0;            // that were used
  std::vector<ClockFinding> findings;  // their x is the counter
};

// Sums and maxima over all devices of a capture. Maxima are over the known cores only.
struct DeviceSummary {
  uint64_t known = 0;    // cores with a map
  uint64_t unknown = 0;  // cores whose events keep the runtime's timestamps
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  uint64_t executions = 0;
  uint64_t sync_points = 0;
  uint64_t restarts = 0;  // parts of maps after the first
};
// Counts cores with an empty map as unknown.
DeviceSummary SummaryOf(const std::vector<DeviceClock>& devices);

// The clocks of a capture. An instance without evidence is not included; its timestamps are used
// unchanged and have no bound. A plain value. Read by exports, the order check and the certificate.
// The models are kept so that a capture can be explained and fitted again.
struct CaptureClocks {
  std::vector<InstanceClock> instances;  // sorted by instance id and boot id
  std::vector<DeviceClock> devices;      // sorted by worker and core
  std::vector<OrderCheck> order;         // sorted by job and event type; only of captures
  ReferenceWindow window;                // the capture's, or a moment for the current clocks
  ClockMaps maps;                        // the `realtime` and `map` of the above
  uint32_t version = 0;   // of the stored models; 0: fitted while it runs, not stored
  bool is_final = false;  // further evidence would not improve it

  // Returns nullptr if nothing is known of the worker's machine. Takes a binary search, which
  // requires `instances` in their order. The pointer is valid while `instances` does not change.
  const InstanceClock* Find(const WorkerIdentity& worker) const;
};

}  // namespace neurontrace
