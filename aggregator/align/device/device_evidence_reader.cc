// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_evidence_reader.h"

#include <algorithm>

#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// How many times nearer one of two cores must have ended for a sync point to be attributed to it.
constexpr uint64_t kMuchNearer = 8;

// Returns the distance of two times of a counter.
uint64_t CounterDistance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

// Keeps every second item; returns how many it removed. Those that remain are spread as evenly as
// before.
template <typename T>
uint64_t Halve(std::vector<T>& items) {
  const size_t before = items.size();
  size_t kept = 0;
  for (size_t i = 0; i < before; i += 2) items[kept++] = items[i];
  items.resize(kept);
  return before - kept;
}

// Returns how far a counter's time is from the nearest end of a run of the core around that place.
// Returns UINT64_MAX if the core has no run. Looks at the runs before and after the place only.
uint64_t DistanceOf(const DeviceEvidence& evidence, const DeviceSyncPoint& point) {
  const auto after = std::upper_bound(
      evidence.executions.begin(), evidence.executions.end(), point.sequence,
      [](uint64_t sequence, const auto& execution) { return sequence < execution.first_sequence; });
  uint64_t nearest = UINT64_MAX;
  const auto look = [&](const DeviceExecution& execution) {
    if (execution.device_end_ns) {
      nearest = std::min(nearest, CounterDistance(*execution.device_end_ns, point.device_ns));
    } else if (execution.device_start_ns) {
      nearest = std::min(nearest, CounterDistance(*execution.device_start_ns, point.device_ns));
    }
  };
  if (after != evidence.executions.begin()) look(*(after - 1));
  if (after != evidence.executions.end()) look(*after);
  return nearest;
}

}  // namespace

void DeviceEvidenceReader::Add(std::span<const DeviceEvent> events) {
  for (const DeviceEvent& event : events) Add(event);
}

// Collectives and barriers tell nothing about a core's own clock. Of executions only starts and
// stops do.
void DeviceEvidenceReader::Add(const DeviceEvent& event) {
  switch (event.type) {
    case DeviceEventType::kOther:
    case DeviceEventType::kDevice:
    case DeviceEventType::kCollective:
    case DeviceEventType::kBarrier:
      return;
    case DeviceEventType::kSyncPoint:
      return AddSyncPoint(event);
    default:
      break;
  }
  if (event.type == DeviceEventType::kRunning && !event.nc_timestamp_ns) {
    ++ignored_.without_counter;
  } else if (event.phase == Phase::kStart) {
    Start(event);
  } else if (event.phase == Phase::kStop) {
    Stop(event);
  }
}

// Both readings are needed. Points beyond the stride are counted as thinned.
void DeviceEvidenceReader::AddSyncPoint(const DeviceEvent& event) {
  if (!event.nc_timestamp_ns || !event.cpu_timestamp_ns) {
    ++ignored_.without_counter;
    return;
  }
  if (sync_points_seen_++ % sync_point_stride_ != 0) {
    ++ignored_.thinned;
    return;
  }
  DeviceSyncPoint point{.exec_id = event.exec_id.value_or(0),
                        .sequence = event.sequence,
                        .device_ns = *event.nc_timestamp_ns,
                        .host_ns = *event.cpu_timestamp_ns};
  // Versions that stamp the event with the reading itself do not say when it was recorded.
  if (event.timestamp_ns != point.host_ns) point.recorded_ns = event.timestamp_ns;
  sync_points_.push_back(point);
  if (sync_points_.size() < limits::kDeviceSyncPointsMax) return;
  ignored_.thinned += Halve(sync_points_);
  sync_point_stride_ *= 2;
}

// An id that repeats shows by a start which its execution already has.
bool DeviceEvidenceReader::AcceptsStart(const Execution& execution,
                                        const DeviceEvent& event) const {
  switch (event.type) {
    case DeviceEventType::kPrepare:
      return !execution.prepare_start_ns && execution.runs.empty();
    case DeviceEventType::kCore:
      return !execution.core_start_ns;
    case DeviceEventType::kFinish:
      return !execution.finish_start_ns;
    case DeviceEventType::kRunning:
      return std::none_of(execution.runs.begin(), execution.runs.end(),
                          [&](const Run& run) { return run.core == event.device_core_idx; });
    default:
      return true;
  }
}

// The number stays valid while the deque moves: numbers count from the first execution of the
// stream.
uint64_t DeviceEvidenceReader::ExecutionFor(const DeviceEvent& event) {
  const auto [at, is_new] = number_of_.try_emplace(*event.exec_id, 0);
  if (!is_new) {
    const Execution* execution = Find(at->second);
    if (execution != nullptr && AcceptsStart(*execution, event)) return at->second;
  }
  at->second = first_open_ + open_.size();
  const uint64_t number = at->second;
  open_.push_back({.exec_id = *event.exec_id});
  // Never closes the one just added, as the limit is far above 1.
  if (open_.size() > limits::kDeviceExecutionsOpenMax) CloseOldest();
  return number;
}

DeviceEvidenceReader::Execution* DeviceEvidenceReader::Find(uint64_t number) {
  if (number < first_open_ || number - first_open_ >= open_.size()) return nullptr;
  return &open_[number - first_open_];
}

// Prepare, wait and running need their stop as well, so their span is remembered.
void DeviceEvidenceReader::Start(const DeviceEvent& event) {
  if (!event.exec_id) {
    ++ignored_.without_execution;
    return;
  }
  const uint64_t number = ExecutionFor(event);
  Execution& execution = *Find(number);
  Span span{.execution = number};
  switch (event.type) {
    case DeviceEventType::kPrepare:
      execution.prepare_start_ns = event.timestamp_ns;
      break;
    // kCore and kFinish need no stop: only their starts are bounds.
    case DeviceEventType::kCore:
      execution.core_start_ns = event.timestamp_ns;
      return;
    case DeviceEventType::kFinish:
      execution.finish_start_ns = event.timestamp_ns;
      return;
    case DeviceEventType::kRunning:
      if (execution.runs.size() >= limits::kDeviceCoresMax) {
        ++ignored_.cores_beyond;
        return;
      }
      span.run = execution.runs.size();
      execution.runs.push_back({.core = event.device_core_idx,
                                .start_ns = event.nc_timestamp_ns,
                                .first_sequence = event.sequence,
                                .last_sequence = event.sequence});
      break;
    default:
      break;
  }
  spans_.Put(event, span);
}

// A stop whose start is not remembered is of no use, because it does not name its execution.
void DeviceEvidenceReader::Stop(const DeviceEvent& event) {
  if (event.type == DeviceEventType::kCore || event.type == DeviceEventType::kFinish) return;
  const std::optional<Span> span = spans_.Take(event);
  if (!span) {
    ++ignored_.stops_alone;
    return;
  }
  Execution* execution = Find(span->execution);
  if (execution == nullptr) {
    ++ignored_.late;
  } else if (event.type == DeviceEventType::kPrepare) {
    execution->prepare_stop_ns = event.timestamp_ns;
  } else if (event.type == DeviceEventType::kWait) {
    execution->wait_stop_ns = event.timestamp_ns;
  } else {
    Run& run = execution->runs[span->run];
    run.end_ns = event.nc_timestamp_ns;
    run.last_sequence = std::max(run.last_sequence, event.sequence);
    run.first_sequence = std::min(run.first_sequence, event.sequence);
  }
}

// The latest time that certainly precedes the submission.
std::optional<uint64_t> DeviceEvidenceReader::BeforeOf(const Execution& e) {
  if (!e.core_start_ns) return e.prepare_stop_ns ? e.prepare_stop_ns : e.prepare_start_ns;
  const std::optional<uint64_t>& prepared =
      e.prepare_stop_ns ? e.prepare_stop_ns : e.prepare_start_ns;
  if (!prepared) return e.core_start_ns;
  if (*prepared <= *e.core_start_ns) return prepared;
  ++ignored_.inconsistent;
  return std::nullopt;
}

// The earliest time at which the host certainly knows of the end. Some versions of the runtime
// write another execution's number on a wait, which is then not between its neighbours.
std::optional<uint64_t> DeviceEvidenceReader::AfterOf(const Execution& e) {
  if (!e.wait_stop_ns) return e.finish_start_ns;
  const bool is_between = (!e.core_start_ns || *e.core_start_ns <= *e.wait_stop_ns) &&
                          (!e.finish_start_ns || *e.wait_stop_ns <= *e.finish_start_ns);
  if (is_between) return e.wait_stop_ns;
  ++ignored_.inconsistent;
  return e.finish_start_ns;
}

void DeviceEvidenceReader::CloseOldest() {
  const Execution execution = std::move(open_.front());
  open_.pop_front();
  const uint64_t number = first_open_++;
  const auto at = number_of_.find(execution.exec_id);
  // A newer execution may have taken over the id.
  if (at != number_of_.end() && at->second == number) number_of_.erase(at);
  // Without a run there is no device time to relate to.
  if (execution.runs.empty()) return;
  if (executions_seen_++ % execution_stride_ != 0) {
    ++ignored_.thinned;
    return;
  }
  // Both are of the whole execution: each core's run lies between them.
  const std::optional<uint64_t> before = BeforeOf(execution);
  const std::optional<uint64_t> after = AfterOf(execution);
  for (const Run& run : execution.runs) {
    DeviceCoreEvidence* core = CoreOf(run.core);
    if (core == nullptr) {
      ++ignored_.cores_beyond;
      continue;
    }
    core->evidence.executions.push_back({.exec_id = execution.exec_id,
                                         .first_sequence = run.first_sequence,
                                         .last_sequence = run.last_sequence,
                                         .host_before_ns = before,
                                         .device_start_ns = run.start_ns,
                                         .device_end_ns = run.end_ns,
                                         .host_after_ns = after});
    if (core->evidence.executions.size() >= limits::kDeviceExecutionsMax) ThinExecutions();
  }
}

void DeviceEvidenceReader::ThinExecutions() {
  for (DeviceCoreEvidence& core : cores_) ignored_.thinned += Halve(core.evidence.executions);
  execution_stride_ *= 2;
}

// Cores are kept sorted. Returns nullptr for a core beyond the limit. Pointers are invalid after
// the next new core.
DeviceCoreEvidence* DeviceEvidenceReader::CoreOf(std::optional<uint64_t> index) {
  const auto at = std::lower_bound(
      cores_.begin(), cores_.end(), index,
      [](const DeviceCoreEvidence& core, const auto& i) { return core.device_core_idx < i; });
  if (at != cores_.end() && at->device_core_idx == index) return &*at;
  if (cores_.size() >= limits::kDeviceCoresMax) return nullptr;
  return &*cores_.insert(at, DeviceCoreEvidence{.device_core_idx = index, .evidence = {}});
}

// A sync point does not name its core, but the counters of two cores rarely agree. Returns nullptr
// if no core is clearly nearer than the others.
DeviceCoreEvidence* DeviceEvidenceReader::CoreNear(const DeviceSyncPoint& point) {
  if (cores_.size() == 1) return &cores_.front();
  DeviceCoreEvidence* nearest = nullptr;
  uint64_t least = UINT64_MAX;
  uint64_t second = UINT64_MAX;
  for (DeviceCoreEvidence& core : cores_) {
    const uint64_t distance = DistanceOf(core.evidence, point);
    if (distance < least) {
      second = least;
      least = distance;
      nearest = &core;
    } else {
      second = std::min(second, distance);
    }
  }
  return least <= second / kMuchNearer ? nearest : nullptr;
}

// Executions are closed in the order of their starts, but runs of different cores are recorded in
// any order, hence the sorts.
DeviceExtraction DeviceEvidenceReader::Finish() {
  while (!open_.empty()) CloseOldest();
  // Without any execution there appears to be one core.
  if (cores_.empty() && !sync_points_.empty()) CoreOf(std::nullopt);
  for (DeviceCoreEvidence& core : cores_) {
    std::stable_sort(core.evidence.executions.begin(), core.evidence.executions.end(),
                     [](const DeviceExecution& a, const DeviceExecution& b) {
                       return a.first_sequence < b.first_sequence;
                     });
  }
  std::stable_sort(
      sync_points_.begin(), sync_points_.end(),
      [](const DeviceSyncPoint& a, const DeviceSyncPoint& b) { return a.sequence < b.sequence; });
  // Only now every core is known, and with it where each counter was.
  for (const DeviceSyncPoint& point : sync_points_) {
    DeviceCoreEvidence* core = CoreNear(point);
    if (core == nullptr) {
      ++ignored_.cores_unknown;
    } else {
      core->evidence.sync_points.push_back(point);
    }
  }
  return {std::move(cores_), ignored_};
}

DeviceExtraction ExtractDeviceEvidence(std::span<const DeviceEvent> events) {
  DeviceEvidenceReader reader;
  reader.Add(events);
  return reader.Finish();
}

}  // namespace neurontrace
