// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/align/device/device_event.h"
#include "aggregator/align/device/device_evidence.h"
#include "aggregator/align/device/open_device_spans.h"

namespace neurontrace {

// The evidence of one physical core. A logical core may consist of several, each with its own
// counter. Physical cores share the ring of their logical core, so a reader of one stream finds all
// of them.
struct DeviceCoreEvidence {
  std::optional<uint64_t> device_core_idx;  // nullopt: no event named a core
  DeviceEvidence evidence;
};

// Counts events that could have been evidence, by the reason why they are not. Nothing else depends
// on them: they explain why a clock has little evidence.
struct DeviceEventsIgnored {
  uint64_t without_execution = 0;  // no exec_id
  uint64_t without_counter = 0;    // a device's event without nc_timestamp_ns
  uint64_t stops_alone = 0;        // the start was lost, or is too long ago
  uint64_t inconsistent = 0;       // host events that are not where their execution is
  uint64_t late = 0;               // of executions too long ago
  uint64_t cores_beyond = 0;       // of more cores than one logical core has
  uint64_t cores_unknown = 0;      // sync points that may belong to either of several cores
  uint64_t thinned = 0;            // executions and sync points beyond what is kept
  friend bool operator==(const DeviceEventsIgnored&, const DeviceEventsIgnored&) = default;
};

// The result of reading a stream. Empty without an event of use.
struct DeviceExtraction {
  std::vector<DeviceCoreEvidence> cores;  // sorted by index
  DeviceEventsIgnored ignored;
};

// Extracts the evidence of clocks from the events of one logical core of one process, which are
// added in about the order of its ring. Memory is bounded by limits.h: of open executions the
// oldest are closed, and of finished ones every second, every fourth ... is kept. One thread at a
// time. Used by event_clocks.h while it reads the chunks of a stream, and by tests.
class DeviceEvidenceReader {
 public:
  // Events that are no evidence are ignored; those that could have been are counted.
  void Add(std::span<const DeviceEvent> events);
  // Returns all evidence. Nothing may be added afterwards.
  DeviceExtraction Finish();

 private:
  // An execution on one physical core. Its times are of the device's counter; the sequences are of
  // its start and stop.
  struct Run {
    std::optional<uint64_t> core;
    std::optional<uint64_t> start_ns;
    std::optional<uint64_t> end_ns;
    uint64_t first_sequence = 0;
    uint64_t last_sequence = 0;
  };
  // An execution that is still open. Its times are of the host's clock; nullopt: not seen yet.
  struct Execution {
    uint64_t exec_id = 0;
    std::optional<uint64_t> prepare_start_ns;
    std::optional<uint64_t> prepare_stop_ns;
    std::optional<uint64_t> core_start_ns;
    std::optional<uint64_t> wait_stop_ns;
    std::optional<uint64_t> finish_start_ns;
    std::vector<Run> runs;
  };
  // What a stop needs of its start.
  struct Span {
    uint64_t execution = 0;  // number
    // Its index in the execution's `runs`; only for kRunning.
    size_t run = 0;
  };

  void Add(const DeviceEvent& event);
  // Start opens or extends an execution and remembers the span; Stop completes what its start
  // began.
  void Start(const DeviceEvent& event);
  void Stop(const DeviceEvent& event);
  // Sync points are kept until Finish, because their core is not known before.
  void AddSyncPoint(const DeviceEvent& event);
  // Returns whether the execution can have this start: it has none like it so far.
  bool AcceptsStart(const Execution& execution, const DeviceEvent& event) const;
  // Returns the open execution with the event's id, or a new one if that has had such a start
  // already: ids may repeat.
  uint64_t ExecutionFor(const DeviceEvent& event);
  // Returns nullptr for a number that is closed already.
  Execution* Find(uint64_t number);
  // Moves the oldest open execution to the evidence of its cores, unless it has no run or is
  // thinned.
  void CloseOldest();
  // Return host times certainly before the start, and certainly after the end, of an execution.
  // Both count host events in an impossible order as inconsistent.
  std::optional<uint64_t> BeforeOf(const Execution& execution);
  std::optional<uint64_t> AfterOf(const Execution& execution);
  // Return a core by its index (CoreOf), and the core whose counter fits a sync point (CoreNear).
  DeviceCoreEvidence* CoreOf(std::optional<uint64_t> index);
  DeviceCoreEvidence* CoreNear(const DeviceSyncPoint& point);
  // Halves the executions of every core, and keeps only half as many of those to come.
  void ThinExecutions();

  std::deque<Execution> open_;  // numbered from first_open_
  uint64_t first_open_ = 0;
  absl::flat_hash_map<uint64_t, uint64_t> number_of_;  // by exec_id: the latest
  OpenDeviceSpans<Span> spans_;
  std::vector<DeviceSyncPoint> sync_points_;
  std::vector<DeviceCoreEvidence> cores_;
  // Every execution_stride_-th closed execution and sync_point_stride_-th sync point is kept.
  // Strides double whenever a limit is reached, which keeps the evidence evenly spread in time.
  uint64_t executions_seen_ = 0;
  uint64_t execution_stride_ = 1;
  uint64_t sync_points_seen_ = 0;
  uint64_t sync_point_stride_ = 1;
  DeviceEventsIgnored ignored_;
};

// Reads all events at once.
DeviceExtraction ExtractDeviceEvidence(std::span<const DeviceEvent> events);

}  // namespace neurontrace
