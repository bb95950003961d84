// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/ids.h"

namespace neurontrace {

// Values of the enum are on the wire and in stores and equal those of neurontrace.v1: never change
// one.
enum class CaptureMode : uint8_t {
  kStream = 0,
  kFlightRecorder = 1,  // events stay in the runtime's rings, which overwrite the oldest
  kSnapshot = 2,        // the contents of a flight recorder's rings at one moment
  kContinuous = 3,      // streams until it is stopped; its retention deletes the oldest events
  kPreview = 4,         // agents count events for a moment and send none
};

// Returns whether a capture of this mode runs until it is stopped, and is suspended in a worker
// while another capture records there.
constexpr bool IsStanding(CaptureMode mode) {
  return mode == CaptureMode::kFlightRecorder || mode == CaptureMode::kContinuous;
}

// A label, or a fact about a job.
struct KeyValue {
  std::string key;
  std::string value;
  friend auto operator<=>(const KeyValue&, const KeyValue&) = default;
};

// A range of worker_gid, that is of global ranks. Both ends are included.
struct GidRange {
  int64_t first = 0;
  int64_t last = 0;
  bool contains(int64_t gid) const { return first <= gid && gid <= last; }
  friend bool operator==(const GidRange&, const GidRange&) = default;
};

// What a capture records, when, under which conditions and at which cost: the fields of
// neurontrace.v1.CaptureSpec, which is flat. A plain value; the limits of its fields are checked
// where it is parsed from the wire. A default value records everything until it is stopped.
//
// The nested parts answer one question each, and are read by different components:
//   Selection   which workers and cores: the session chooses workers by it, and agents cores.
//   Filter      which of their events: agents hand it to the runtime, and apply what that cannot.
//   Timing      how long, or how far back: the session stops the capture by it, and agents cut
//               snapshots.
//   Conditions  what has to be true before it begins, and at which executions it begins and ends.
//   Retention   how much is kept: the aggregator deletes by it, and the runtime's rings are sized.
//   Budget      what it may cost: agents leave out events by it, the aggregator stops the capture.
// A part that is empty, or a field that is 0, sets no limit.
struct CaptureSpec {
  // Which workers, and which cores of them, take part.
  struct Selection {
    std::string job;
    std::vector<KeyValue> job_facts;  // the worker must have all of them
    std::vector<std::string> instance_ids;
    std::vector<uint32_t> neuron_cores;  // nc_idx, inside the process
    std::vector<GidRange> worker_gids;

    bool empty() const { return *this == Selection(); }
    friend bool operator==(const Selection&, const Selection&) = default;
  };

  // Which of their events are recorded.
  struct Filter {
    std::vector<std::string> event_types;  // in the grammar of lib/trace/event_filter.h
    bool all_events = false;               // without event_types: allocation noise, too
    bool include_neuron = true;            // events of the Neuron runtime
    bool include_framework = true;         // profiles that frameworks write to files
    // Frameworks that are asked to record on demand (lib/trace/framework_trace.h), on all selected
    // workers, for Timing::duration_ns or for these optimizer steps. First step 0: the next one
    // that the framework can begin at. Stacks slow workers down considerably.
    std::vector<std::string> frameworks;
    uint64_t framework_first_step = 0;
    uint32_t framework_steps = 0;
    bool framework_stacks = false;

    friend bool operator==(const Filter&, const Filter&) = default;
  };

  // Which span of time is recorded.
  struct Timing {
    uint64_t duration_ns = 0;   // 0: until it is stopped
    uint64_t last_ns = 0;       // kSnapshot: how far back; 0: everything the rings hold
    CaptureId flight_recorder;  // kSnapshot: the capture whose rings are read

    friend bool operator==(const Timing&, const Timing&) = default;
  };

  // What must be true before it begins, and the executions at which it begins and ends.
  struct Conditions {
    uint32_t require_percent = 0;  // of the selected workers that must be armed; 0: any number
    bool at_next_execution = false;
    uint64_t at_execution = 0;  // 0: begins by time
    uint64_t executions = 0;    // of each core; 0: ends by Timing::duration_ns

    bool by_execution() const { return at_next_execution || at_execution > 0 || executions > 0; }
    friend bool operator==(const Conditions&, const Conditions&) = default;
  };

  // How much of what it records is kept.
  struct Retention {
    // kContinuous: older events are deleted. Other modes: the capture is deleted this long after
    // its end. 0: no limit.
    uint64_t duration_ns = 0;
    uint64_t bytes = 0;  // kContinuous: the oldest events beyond it are deleted; 0: no limit
    uint64_t ring_events_per_core = 0;  // 0: limits::kRingEventsPerCoreDefault

    friend bool operator==(const Retention&, const Retention&) = default;
  };

  // What it may cost.
  struct Budget {
    uint32_t core_ppm = 0;          // of one processor, for each worker; 0: no limit
    uint64_t bytes_per_second = 0;  // for each worker; 0: no limit
    uint64_t stored_bytes_max =
        0;  // the capture is stopped when it has stored this much; 0: no limit

    friend bool operator==(const Budget&, const Budget&) = default;
  };

  std::string name;
  CaptureMode mode = CaptureMode::kStream;
  Selection selection;
  Filter filter;
  Timing timing;
  Conditions conditions;
  Retention retention;
  Budget budget;
  std::vector<KeyValue> labels;
  // kContinuous: verdicts are made of it while it records (aggregator/watch).
  bool watch = false;
  std::string cause;  // why a trigger started it; empty: a person did

  friend bool operator==(const CaptureSpec&, const CaptureSpec&) = default;
};

}  // namespace neurontrace
