// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/retention_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "aggregator/align/core/clock_maps.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// From the end of one pass to the start of the next.
constexpr uint64_t kIntervalNs = 1'000'000'000;
// Writers get at least as much time as a step took, within these limits.
constexpr uint64_t kPauseMinNs = 200'000;
constexpr uint64_t kPauseMaxNs = 50'000'000;

}  // namespace

RetentionService::RetentionService(const Deps& deps)
    : metrics_(deps.registry),
      clock_(deps.clock),
      clocks_(deps.clocks),
      clock_steps_(deps.clock_steps),
      owner_(deps.owner),
      retention_({.store = deps.store,
                  .clock = deps.clock,
                  .leases = deps.leases,
                  .changes = deps.changes,
                  .metrics = metrics_,
                  .environment = *this}) {
  loop_.PostDelayedTask([this] { RunAndReschedule(); }, kIntervalNs);
  thread_ = std::thread([this] { loop_.Run(); });
}

RetentionService::~RetentionService() { End(); }

void RetentionService::End() {
  is_ending_ = true;
  if (!thread_.joinable()) return;
  loop_.Quit();
  thread_.join();
}

absl::StatusOr<ClockMaps> RetentionService::ReadClockMaps() {
  ASSIGN_OR_RETURN(CaptureClocks now, clocks_.book().Now(clock_.RealtimeNs()));
  return std::move(now.maps);
}

void RetentionService::PauseAfterStep(uint64_t step_ns) {
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(std::clamp(step_ns, kPauseMinNs, kPauseMaxNs)));
}

// Errors are logged here, and what failed is tried again by the next pass.
void RetentionService::RunAndReschedule() {
  if (const absl::Status status = retention_.Run(); !status.ok()) {
    SPDLOG_WARN("retention: {}", std::string(status.message()));
  }
  if (!is_ending_) owner_.RunDiskChores();
  loop_.PostDelayedTask([this] { RunAndReschedule(); }, kIntervalNs);
}

}  // namespace neurontrace
