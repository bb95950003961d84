// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "tests/clock_sim/device_method.h"
#include "tests/clock_sim/minus.h"

namespace neurontrace {
namespace {

using SyncPoint = DeviceRecords::SyncPoint;

const SyncPoint& NearestTo(const std::map<uint64_t, SyncPoint>& points, uint64_t exec_id,
                           uint64_t device_ns) {
  const auto after = points.lower_bound(exec_id);
  if (after != points.end() && after->first == exec_id) return after->second;
  if (after == points.end()) return std::prev(after)->second;
  if (after == points.begin()) return after->second;
  const auto before = std::prev(after);
  const double to_before = std::abs(Minus(device_ns, before->second.device_ns));
  return to_before <= std::abs(Minus(device_ns, after->second.device_ns)) ? before->second
                                                                          : after->second;
}

// B4, the vendor's: the distance on the device's clock from the sync point with the execution's
// exec_id; without one, from that of the execution before or after, whichever is nearer.
DeviceMapping MapByOnePoint(const DeviceRecords& records, std::span<const DeviceStamp> stamps) {
  std::map<uint64_t, SyncPoint> of_execution;
  for (const DeviceRecords::Execution& execution : records.executions) {
    if (execution.sync) of_execution.emplace(execution.sync->exec_id, *execution.sync);
  }
  DeviceMapping mapping;
  for (const DeviceStamp& stamp : stamps) {
    const uint64_t exec_id = records.executions[stamp.execution].exec_id;
    const SyncPoint& point = NearestTo(of_execution, exec_id, stamp.device_ns);
    mapping.mapped.push_back({.reference_ns = point.host_ns + (stamp.device_ns - point.device_ns)});
  }
  return mapping;
}

struct Line {
  uint64_t x_ns = 0;
  uint64_t y_ns = 0;
  double slope = 1;
  uint64_t At(uint64_t x) const {
    return y_ns + static_cast<uint64_t>(std::llround(slope * Minus(x, x_ns)));
  }
};

Line FitLine(std::span<const SyncPoint> points) {
  if (points.empty()) return {};
  const SyncPoint& first = points.front();
  const double count = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const SyncPoint& point : points) {
    mean_x += Minus(point.device_ns, first.device_ns) / count;
    mean_y += Minus(point.host_ns, first.host_ns) / count;
  }
  double xx = 0;
  double xy = 0;
  for (const SyncPoint& point : points) {
    const double x = Minus(point.device_ns, first.device_ns) - mean_x;
    xx += x * x;
    xy += x * (Minus(point.host_ns, first.host_ns) - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 1;
  const double y = mean_y - slope * mean_x;
  return {.x_ns = first.device_ns,
          .y_ns = first.host_ns + static_cast<uint64_t>(std::llround(y)),
          .slope = slope};
}

// B2: linear regression over all sync points between two resets of the counter, which show in that
// an execution starts at less than the one before.
DeviceMapping MapByRegression(const DeviceRecords& records, std::span<const DeviceStamp> stamps) {
  DeviceMapping mapping;
  size_t stamp = 0;
  for (size_t begin = 0; begin < records.executions.size();) {
    size_t end = begin + 1;
    while (end < records.executions.size() &&
           records.executions[end].start_ns > records.executions[end - 1].start_ns) {
      ++end;
    }
    std::vector<SyncPoint> points;
    for (size_t i = begin; i < end; ++i) {
      if (records.executions[i].sync) points.push_back(*records.executions[i].sync);
    }
    const Line line = FitLine(points);
    for (; stamp < stamps.size() && stamps[stamp].execution < end; ++stamp) {
      mapping.mapped.push_back({.reference_ns = line.At(stamps[stamp].device_ns)});
    }
    begin = end;
  }
  return mapping;
}

constexpr std::array<DeviceMethod, 2> kBaselines = {{
    {.name = "B4 vendor single point", .map = MapByOnePoint},
    {.name = "B2 regression", .map = MapByRegression},
}};

}  // namespace

std::span<const DeviceMethod> DeviceBaselines() { return kBaselines; }

}  // namespace neurontrace
