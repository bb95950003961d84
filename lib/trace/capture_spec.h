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
  kFlightRecorder = 1,  // events stay in the runtime's rings, where the oldest give way
  kSnapshot = 2,        // what the rings of a flight recorder hold at one cut
  kContinuous = 3,      // streams until it is stopped; the oldest are deleted by its retention
  kPreview = 4,         // counted by the agents for a moment, sent by none
};

// One that goes on until somebody ends it, and gives way to others meanwhile.
constexpr bool IsStanding(CaptureMode mode) {
  return mode == CaptureMode::kFlightRecorder || mode == CaptureMode::kContinuous;
}

struct KeyValue {
  std::string key;
  std::string value;
  friend auto operator<=>(const KeyValue&, const KeyValue&) = default;
};

struct GidRange {  // both ends in
  int64_t first = 0;
  int64_t last = 0;
  bool contains(int64_t gid) const { return first <= gid && gid <= last; }
  friend bool operator==(const GidRange&, const GidRange&) = default;
};

// What a capture records. Empty selections mean everything. A plain value; limits are checked at
// the wire.
struct CaptureSpec {
  std::string name;
  std::string job;
  std::vector<std::string> instance_ids;
  std::vector<uint32_t> neuron_cores;    // nc_idx, inside the process
  std::vector<std::string> event_types;  // grammar of lib/trace/event_filter.h
  uint64_t duration_ns = 0;              // 0: until stopped
  uint64_t ring_events_per_core = 0;     // 0: limits::kRingEventsPerCoreDefault
  bool include_neuron = true;
  bool include_framework = true;
  CaptureMode mode = CaptureMode::kStream;
  std::vector<KeyValue> job_facts;  // all of which the worker has to have
  std::vector<GidRange> worker_gids;
  bool all_events = false;  // with no event_types: allocation noise too
  std::vector<KeyValue> labels;
  uint32_t require_percent = 0;  // of the selected workers, that have to be armed; 0: any
  bool at_next_execution = false;
  uint64_t at_execution = 0;  // 0: by time
  uint64_t executions = 0;    // of each core; 0: by duration_ns
  uint64_t bytes_max = 0;     // stored; 0: no limit
  uint64_t retention_ns = 0;
  uint64_t retention_bytes = 0;
  uint64_t last_ns = 0;                  // kSnapshot: how far back; 0: all there is
  CaptureId flight_recorder;             // kSnapshot: whose rings
  uint32_t budget_core_ppm = 0;          // of one processor, for each worker; 0: none
  uint64_t budget_bytes_per_second = 0;  // for each worker; 0: none
  std::string cause;                     // the trigger's words

  bool by_execution() const { return at_next_execution || at_execution > 0 || executions > 0; }

  friend bool operator==(const CaptureSpec&, const CaptureSpec&) = default;
};

}  // namespace neurontrace
