// SPDX-License-Identifier: Apache-2.0
// Goal: from the events of a runtime a core's clock is found: where hardware events truly were on
// the host's clock, better than the runtime says itself. Method: plans of a simulated core, whose
// truth is known, read as an agent would have sent them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence_reader.h"
#include "aggregator/align/device/device_fit.h"
#include "aggregator/align/device/device_times.h"
#include "tests/fake_nrt/event_form.h"
#include "tests/fake_nrt/execution_planner.h"

namespace neurontrace {
namespace {

constexpr int64_t kStart = 1755115507000000000;
constexpr int64_t kMs = 1'000'000;

struct Recorded {
  DeviceEvent event;
  bool is_hardware = false;
  int64_t true_host_ns = 0;  // of what it reports
};

std::optional<uint64_t> ValueOf(const PlannedEvent& planned, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\":";
  const auto& fields = planned.form.form->fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].key.find(quoted) != std::string::npos) return planned.values[i];
  }
  return std::nullopt;
}

class Core {
 public:
  explicit Core(uint32_t physical_per_logical) {
    PlannerOptions options;
    options.host_clock = {.offset_ns = 3'000'000, .drift_ppm = 12, .origin_ns = kStart};
    options.physical_per_logical = physical_per_logical;
    options.first_physical_core = 4;
    ExecutionPlanner planner(schedule_, forms_, options);
    for (uint64_t step = 0; step < 300; ++step) {
      for (const PlannedEvent& planned : planner.Plan(step)) Record(planned, options.host_clock);
    }
  }

  std::vector<DeviceEvent> Events() const {
    std::vector<DeviceEvent> events;
    for (const Recorded& r : recorded_) events.push_back(r.event);
    return events;
  }
  const std::vector<Recorded>& recorded() const { return recorded_; }

 private:
  void Record(const PlannedEvent& planned, const HostClock& host) {
    Recorded recorded;
    DeviceEvent& event = recorded.event;
    event.type = DeviceEventTypeOf(planned.form.event_type);
    const std::string_view phase = planned.form.phase;
    event.phase = phase == "start"  ? Phase::kStart
                  : phase == "stop" ? Phase::kStop
                                    : Phase::kInstant;
    event.sequence = recorded_.size();
    event.tracking_id = planned.tracking_id;
    event.timestamp_ns = static_cast<uint64_t>(planned.timestamp_ns);
    event.exec_id = ValueOf(planned, "exec_id");
    event.nc_timestamp_ns = ValueOf(planned, "nc_timestamp_ns");
    event.cpu_timestamp_ns = ValueOf(planned, "cpu_timestamp_ns");
    event.device_core_idx = ValueOf(planned, "device_core_idx");
    recorded.is_hardware =
        event.nc_timestamp_ns.has_value() && event.type != DeviceEventType::kSyncPoint;
    recorded.true_host_ns = host.Stamp(planned.true_ns);
    recorded_.push_back(recorded);
  }

  Schedule schedule_{
      ScheduleOptions{.seed = 7, .start_at_ns = kStart, .period_ns = 100 * kMs, .collectives = 4}};
  WorkloadForms forms_;
  std::vector<Recorded> recorded_;
};

struct Errors {
  std::vector<double> model_ns;
  std::vector<double> vendor_ns;
  size_t beyond_bound = 0;
  size_t vendor = 0;  // the runtime's own time was kept
};

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<size_t>(share * (values.size() - 1))];
}

Errors ErrorsOf(const Core& core) {
  const StreamIdentity stream;
  ClockMaps maps;
  for (const DeviceCoreEvidence& c : ExtractDeviceEvidence(core.Events()).cores) {
    maps.SetDevice(stream.worker, {stream.nc_idx, c.device_core_idx},
                   DeviceMapOf(FitDeviceClock(c.evidence, {})));
  }
  DeviceTimes times;
  times.Begin(&maps, stream);
  Errors errors;
  // What a stop has of its start.
  std::map<std::pair<DeviceEventType, uint64_t>, const DeviceEvent*> starts;
  for (const Recorded& r : core.recorded()) {
    if (!r.is_hardware) continue;
    const DeviceEvent*& start = starts[{r.event.type, r.event.tracking_id}];
    if (r.event.phase != Phase::kStop || start == nullptr) start = &r.event;
    const auto time = times.Map({start->device_core_idx, {r.event.sequence, start->exec_id}},
                                *r.event.nc_timestamp_ns, r.event.timestamp_ns);
    const auto error = [&r](uint64_t ns) {
      return std::abs(static_cast<double>(static_cast<int64_t>(ns) - r.true_host_ns));
    };
    errors.vendor_ns.push_back(error(r.event.timestamp_ns));
    if (!time) {
      ++errors.vendor;
      continue;
    }
    errors.model_ns.push_back(error(time->host_ns));
    if (error(time->host_ns) > static_cast<double>(time->bound_ns)) ++errors.beyond_bound;
  }
  return errors;
}

TEST(FakeDeviceClockTest, OneCoresEventsAreWithinMicroseconds) {
  const Errors errors = ErrorsOf(Core(1));
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.vendor, 0u);
  EXPECT_LE(Quantile(errors.model_ns, 0.99), 2'500);
  EXPECT_LE(Quantile(errors.model_ns, 1), 4'000);
  EXPECT_GE(Quantile(errors.vendor_ns, 0.99), 5 * Quantile(errors.model_ns, 0.99));
}

TEST(FakeDeviceClockTest, DistinguishesCoresByCounters) {
  const Errors errors = ErrorsOf(Core(2));
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.vendor, 0u) << "the counters are seconds apart";
}

}  // namespace
}  // namespace neurontrace
