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

#include "aggregator/align/device_evidence_reader.h"
#include "aggregator/align/device_fit.h"
#include "aggregator/align/device_stamp.h"
#include "tests/fake_nrt/event_form.h"
#include "tests/fake_nrt/execution_planner.h"

namespace neurontrace {
namespace {

constexpr int64_t kStart = 1755115507000000000;
constexpr int64_t kMs = 1'000'000;

struct Recorded {
  DeviceEvent event;
  bool is_hardware = false;
  int64_t true_host_ns = 0;  // of what it tells of
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
  std::map<StampSource, size_t> sources;
};

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<size_t>(share * (values.size() - 1))];
}

Errors ErrorsOf(const Core& core) {
  DeviceExtraction found = ExtractDeviceEvidence(core.Events());
  std::vector<DeviceCoreClock> clocks;
  for (const DeviceCoreEvidence& c : found.cores) {
    clocks.push_back({c.device_core_idx, FitDeviceClock(c.evidence, {})});
  }
  Errors errors;
  // What a stop has of its start.
  std::map<std::pair<DeviceEventType, uint64_t>, const DeviceEvent*> starts;
  for (const Recorded& r : core.recorded()) {
    if (!r.is_hardware) continue;
    const DeviceEvent*& start = starts[{r.event.type, r.event.tracking_id}];
    if (r.event.phase != Phase::kStop || start == nullptr) start = &r.event;
    const HostStamp stamp = DecideStamp({.vendor_ns = r.event.timestamp_ns,
                                         .counter_ns = r.event.nc_timestamp_ns,
                                         .device_core_idx = start->device_core_idx,
                                         .exec_id = start->exec_id,
                                         .sequence = r.event.sequence},
                                        clocks);
    const auto error = [&r](uint64_t ns) {
      return std::abs(static_cast<double>(static_cast<int64_t>(ns) - r.true_host_ns));
    };
    ++errors.sources[stamp.source];
    errors.vendor_ns.push_back(error(r.event.timestamp_ns));
    if (stamp.source != StampSource::kModel) continue;
    errors.model_ns.push_back(error(stamp.host_ns));
    if (error(stamp.host_ns) > static_cast<double>(stamp.bound_ns)) ++errors.beyond_bound;
  }
  return errors;
}

TEST(FakeDeviceClockTest, OneCoresEventsAreWithinMicroseconds) {
  const Errors errors = ErrorsOf(Core(1));
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.sources.size(), 1u);
  EXPECT_TRUE(errors.sources.contains(StampSource::kModel));
  EXPECT_LE(Quantile(errors.model_ns, 0.99), 2'500);
  EXPECT_LE(Quantile(errors.model_ns, 1), 4'000);
  EXPECT_GE(Quantile(errors.vendor_ns, 0.99), 5 * Quantile(errors.model_ns, 0.99));
}

TEST(FakeDeviceClockTest, TwoCoresOfOneAreToldApartByTheirCounters) {
  const Errors errors = ErrorsOf(Core(2));
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.sources.size(), 1u) << "the counters are seconds apart";
  EXPECT_TRUE(errors.sources.contains(StampSource::kModel));
}

}  // namespace
}  // namespace neurontrace
