// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/sim_schedule.h"

#include <algorithm>

namespace neurontrace {
namespace {

constexpr int64_t kHostUnitMaxNs = 10'000'000;
constexpr size_t kRecentSteps = 8;

// Barriers of a step: the host's, the device's, then one per collective.
constexpr uint32_t kHostBarrier = 0;
constexpr uint32_t kDeviceBarrier = 1;
constexpr uint32_t kFirstCollective = 2;

// Salts of the random numbers.
enum : uint64_t { kLaunch = 1, kWork, kTransfer, kLeave, kExecute };

// Shares of the step's length. With the host's phases of 0.15 units before and after they leave a
// tenth of the step free at the least.
constexpr double kComputeShare = 0.30;
constexpr double kTransferShare = 0.10;

}  // namespace

RankStep Delayed(RankStep step, const StepDelay& delay) {
  const int64_t own_ns = delay.begin_ns + delay.own_ns;
  const int64_t job_ns = delay.begin_ns + delay.job_ns;
  step.begin_ns += delay.begin_ns;
  step.execute_ns += own_ns;
  step.core_ns += own_ns;
  step.host_barrier.enter_ns += own_ns;
  step.host_barrier.exit_ns += job_ns;
  step.device_start_ns += job_ns;
  step.device_barrier.enter_ns += job_ns;
  step.device_barrier.exit_ns += job_ns;
  for (BarrierTimes& collective : step.collectives) {
    collective.enter_ns += job_ns;
    collective.exit_ns += job_ns;
  }
  step.device_stop_ns += job_ns;
  return step;
}

Schedule::Schedule(const ScheduleOptions& options)
    : options_(options),
      random_(options.seed),
      host_unit_ns_(std::min(options.period_ns, kHostUnitMaxNs)),
      period_ns_(options.period_ns + options.host_work_ns +
                 (options.straggler_rank >= 0
                      ? options.straggler_extra_ns * (kFirstCollective + options.collectives)
                      : 0)) {}

int64_t Schedule::StepBegin(uint64_t step) const {
  return options_.start_at_ns + static_cast<int64_t>(step) * period_ns_;
}

uint64_t Schedule::FirstStepFrom(int64_t true_ns) const {
  if (true_ns <= options_.start_at_ns) return 0;
  return static_cast<uint64_t>((true_ns - options_.start_at_ns + period_ns_ - 1) / period_ns_);
}

int64_t Schedule::Lateness(uint64_t step, uint32_t rank) const {
  const bool is_late = rank == options_.straggler_rank &&
                       StepBegin(step) - options_.start_at_ns >= options_.straggler_after_ns;
  return is_late ? options_.straggler_extra_ns : 0;
}

int64_t Schedule::HostEnter(uint64_t step, uint32_t rank) const {
  const double launch = random_.Between(0.205, 0.215, {kExecute, step, rank});
  return StepBegin(step) + static_cast<int64_t>(launch * static_cast<double>(host_unit_ns_)) +
         options_.host_work_ns + Lateness(step, rank);
}

int64_t Schedule::DeviceStart(uint64_t step, uint32_t rank) const {
  const double launch = random_.Between(0.010, 0.015, {kLaunch, step, rank});
  return HostEnter(step, rank) + static_cast<int64_t>(launch * static_cast<double>(host_unit_ns_));
}

int64_t Schedule::Enter(uint64_t step, uint32_t barrier, uint32_t rank,
                        int64_t release_before) const {
  if (barrier == kHostBarrier) return HostEnter(step, rank);
  if (barrier == kDeviceBarrier) {
    return DeviceStart(step, rank) + host_unit_ns_ / 2000 + Lateness(step, rank);
  }
  const double share = kComputeShare / (options_.collectives + 1) *
                       random_.Between(0.8, 1.2, {kWork, step, barrier, rank});
  return Exit(step, barrier - 1, rank, release_before) +
         static_cast<int64_t>(share * static_cast<double>(options_.period_ns)) +
         Lateness(step, rank);
}

int64_t Schedule::Exit(uint64_t step, uint32_t barrier, uint32_t rank, int64_t release) const {
  const double spread = static_cast<double>(host_unit_ns_) * 0.01 / (options_.collectives + 2);
  return release + static_cast<int64_t>(random_.Unit({kLeave, step, barrier, rank}) * spread);
}

Schedule::Releases Schedule::ComputeReleases(uint64_t step) const {
  Releases releases;
  for (uint32_t barrier = 0; barrier < kFirstCollective + options_.collectives; ++barrier) {
    const int64_t before = barrier == 0 ? 0 : releases.back();
    int64_t last = INT64_MIN;
    for (uint32_t rank = 0; rank < options_.world_size; ++rank) {
      last = std::max(last, Enter(step, barrier, rank, before));
    }
    double transfer = 0.002 * static_cast<double>(host_unit_ns_);
    if (barrier >= kFirstCollective) {
      transfer = static_cast<double>(options_.period_ns) * kTransferShare / options_.collectives *
                 random_.Between(0.9, 1.1, {kTransfer, step, barrier});
    }
    releases.push_back(last + std::max<int64_t>(1, static_cast<int64_t>(transfer)));
  }
  return releases;
}

std::shared_ptr<const Schedule::Releases> Schedule::ReleasesOf(uint64_t step) const {
  // Under the lock: the cores of a process ask for the same step at about the same time, and only
  // the first should compute it.
  const std::lock_guard lock(mutex_);
  for (const auto& [known, releases] : recent_) {
    if (known == step) return releases;
  }
  auto releases = std::make_shared<const Releases>(ComputeReleases(step));
  recent_.emplace_back(step, releases);
  if (recent_.size() > kRecentSteps) recent_.pop_front();
  return releases;
}

RankStep Schedule::Rank(uint64_t step, uint32_t rank) const {
  const auto releases = ReleasesOf(step);
  const auto barrier = [&](uint32_t index) {
    const int64_t before = index == 0 ? 0 : (*releases)[index - 1];
    return BarrierTimes{.enter_ns = Enter(step, index, rank, before),
                        .exit_ns = Exit(step, index, rank, (*releases)[index])};
  };
  RankStep result;
  result.begin_ns = StepBegin(step);
  result.host_barrier = barrier(kHostBarrier);
  result.core_ns = result.host_barrier.enter_ns - host_unit_ns_ / 1000;
  // A late rank is late before it calls the runtime, as one with a slow input pipeline is.
  result.execute_ns = result.core_ns - host_unit_ns_ * 4 / 100;
  result.device_start_ns = DeviceStart(step, rank);
  result.device_barrier = barrier(kDeviceBarrier);
  for (uint32_t i = 0; i < options_.collectives; ++i) {
    result.collectives.push_back(barrier(kFirstCollective + i));
  }
  const int64_t last = result.collectives.empty() ? result.device_barrier.exit_ns
                                                  : result.collectives.back().exit_ns;
  const double tail = kComputeShare / (options_.collectives + 1) *
                      random_.Between(0.8, 1.2, {kWork, step, 0, rank});
  result.device_stop_ns =
      last + static_cast<int64_t>(tail * static_cast<double>(options_.period_ns));
  return result;
}

}  // namespace neurontrace
