// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_steps.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// How far the stored offset may differ from the actual one, which changes while NTP slews the
// clock.
constexpr int64_t kSavedWithinNs = 1'000'000'000;

// Returns "forward by 12.0 s" or "back by 12.0 s".
std::string StepText(int64_t step_ns) {
  return fmt::format("{} by {:.1f} s", step_ns > 0 ? "forward" : "back",
                     std::abs(static_cast<double>(step_ns)) / 1e9);
}

}  // namespace

ClockSteps::ClockSteps(Store& store, SteadyClock& clock, std::string boot,
                       prometheus::Registry& registry)
    : store_(store),
      clock_(clock),
      boot_(std::move(boot)),
      step_seconds_(
          MakeGauge(registry, "neurontrace_aggregator_clock_step_seconds",
                    "Seconds that the machine's clock was set forward (negative: back) from the "
                    "time that the aggregator keeps; 0: the aggregator follows it")),
      steps_(MakeCounter(registry, "neurontrace_aggregator_clock_steps_total",
                         "Times that the machine's clock was set by a second or more")) {}

// There are three cases: no step, a step while a capture is recorded, and a step without one.
std::string ClockSteps::Begin(bool is_recording) {
  const auto stored = store_.ReadClock();
  if (stored.ok()) {
    record_ = *stored;
  } else {
    SPDLOG_WARN("cannot determine whether the clock was set: {}",
                std::string(stored.status().message()));
  }
  // An offset to CLOCK_BOOTTIME means nothing after another boot.
  const bool is_same_boot = !boot_.empty() && record_.boot == boot_;
  clock_.SetOffset(is_same_boot ? std::optional(record_.offset_ns) : std::nullopt);
  const int64_t step_ns = clock_.StepNs();
  std::string news;
  if (std::abs(step_ns) < SteadyClock::kStepNs) {
    // A small difference is dropped unless a capture's timestamps began with it.
    if (!is_recording) clock_.SetOffset(std::nullopt);
  } else if (is_recording) {
    news = fmt::format("the machine's clock was set {}: running captures keep the previous time",
                       StepText(step_ns));
  } else {
    // Nothing is recorded: adopts the new time. Only a step forward has to delay expiry; after a
    // step back timestamps expire later by themselves.
    if (step_ns > 0) {
      record_.AddStep({clock_.RealtimeNs(), static_cast<uint64_t>(step_ns)});
    }
    clock_.SetOffset(std::nullopt);
    news = fmt::format(
        "the machine's clock was set {}: the aggregator adopts the new time; captures from before "
        "{}",
        StepText(step_ns),
        step_ns > 0 ? "expire that much later by the new time" : "are kept longer by that much");
  }
  // Messages of Check start from here.
  reported_step_ns_ = clock_.StepNs();
  reported_steps_ = clock_.steps();
  step_seconds_.Set(static_cast<double>(reported_step_ns_) / 1e9);
  Save();
  return news;
}

// The metrics follow at every call; messages only come when something has changed.
std::optional<std::string> ClockSteps::Check() {
  const int64_t step_ns = clock_.StepNs();
  step_seconds_.Set(static_cast<double>(step_ns) / 1e9);
  steps_.Increment(static_cast<double>(clock_.steps()) - steps_.Value());
  const int64_t moved_ns = clock_.OffsetNs() - record_.offset_ns;
  if (!was_saved_ || std::abs(moved_ns) >= kSavedWithinNs) Save();
  // The clock is back within what the aggregator follows.
  const bool is_over = step_ns == 0 && reported_step_ns_ != 0;
  if (!is_over && clock_.steps() == reported_steps_) return std::nullopt;
  reported_steps_ = clock_.steps();
  reported_step_ns_ = step_ns;
  if (is_over) return "the machine's clock is back at the time that the aggregator keeps";
  if (std::abs(step_ns) < SteadyClock::kStepNs) {
    return fmt::format(
        "the machine's clock was set {}: the aggregator approaches the new time by {} us per "
        "second so that durations stay right; its timestamps differ until it has caught up",
        StepText(step_ns), SteadyClock::kSlewPpm);
  }
  return fmt::format(
      "the machine's clock was set {}: the aggregator keeps the previous time, so that durations "
      "and retention stay right, until the clock is set back or the aggregator is restarted while "
      "no capture is running",
      StepText(step_ns));
}

// Called from Begin and Check only, on one thread.
void ClockSteps::Save() {
  record_.boot = boot_;
  record_.offset_ns = clock_.OffsetNs();
  const absl::Status status = store_.WriteClock(record_);
  if (!status.ok() && was_saved_) {
    SPDLOG_WARN("cannot store the offset of the clock: {}", std::string(status.message()));
  }
  was_saved_ = status.ok();
}

}  // namespace neurontrace
