// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_world.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace neurontrace {
namespace {

enum DicePart : uint64_t {
  kClockDice = 1,
  kProbeDice = 2,
  kSnapshotDice = 3,
  kEventDice = 4,
  kUtcDice = 5,
  kUtcClockDice = 301,
  kReferenceHostDice = 302,
};

// The reference wanders against UTC as any counter does.
ClockPlan PlanUtc(uint64_t seed) {
  Dice dice(seed, kUtcClockDice);
  return {.origin_ns = 1'790'000'123'456'789'000,
          .frequency_ppm = dice.Normal(15),
          .wave_ppm = dice.Between(0.1, 0.3),
          .wave_period_s = dice.Between(200, 900),
          .wave_phase = dice.Between(0, 6)};
}

bool IsBefore(const UtcReading& a, const UtcReading& b) { return a.raw_ns < b.raw_ns; }

bool AgentIsUp(const HostPlan& plan, int64_t true_ns) {
  return std::none_of(plan.agent_down.begin(), plan.agent_down.end(), [&](const TimeSpan& down) {
    return true_ns >= down.begin_ns && true_ns < down.end_ns;
  });
}

SteeredClock MakeSteered(const HostPlan& plan, const TrueClock& raw) {
  std::vector<Steering> schedule = plan.steering;
  if (schedule.empty()) schedule.push_back({});
  const uint64_t raw_begin = raw.Read(0);
  for (Steering& steering : schedule) steering.raw_ns += raw_begin;
  constexpr uint64_t kRealtimeBegin = 1'790'000'000'000'000'000;
  return SteeredClock(kRealtimeBegin, std::move(schedule));
}

// Sends the probes of a host and notes what came back.
class Prober {
 public:
  Prober(const HostPlan& plan, const ReferenceClock& reference, const HostTruth& truth, Dice dice)
      : plan_(plan), reference_(reference), truth_(truth), dice_(dice) {}

  void Run(int64_t duration_ns);
  // In ascending order of their receipt.
  void MoveTo(HostRecords& records, std::vector<HostTruth::Flight>* flights);

 private:
  void Burst(int64_t at_ns, uint32_t packets);
  void Probe(int64_t at_ns);

  const HostPlan& plan_;
  const ReferenceClock& reference_;
  const HostTruth& truth_;
  Dice dice_;
  std::vector<ClockExchange> exchanges_;
  std::vector<HostTruth::Flight> flights_;
};

void Prober::Run(int64_t duration_ns) {
  constexpr int64_t kFirstNs = kSecond / 2;
  const uint32_t burst = std::max(1u, plan_.probes.burst);
  const uint32_t bursts = plan_.probes.first / burst;
  for (uint32_t i = 0; i < bursts; ++i) Burst(kFirstNs * i / bursts, burst);
  const double interval = static_cast<double>(plan_.probes.interval_ns);
  double at = bursts > 0 ? static_cast<double>(kFirstNs) : dice_.Between(0, interval);
  while (at < static_cast<double>(duration_ns)) {
    Burst(static_cast<int64_t>(at), burst);
    at += interval * dice_.Between(0.9, 1.1);
  }
}

void Prober::Burst(int64_t at_ns, uint32_t packets) {
  for (uint32_t i = 0; i < packets; ++i) {
    Probe(at_ns);
    at_ns += static_cast<int64_t>(dice_.Between(20e3, 80e3));
  }
}

void Prober::Probe(int64_t at_ns) {
  HostTruth::Flight flight{};
  flight.sent_ns = truth_.raw.WhenRunning(at_ns);
  if (!AgentIsUp(plan_, flight.sent_ns)) return;
  // The stamp is taken before the packet leaves.
  const int64_t left_ns = flight.sent_ns + static_cast<int64_t>(dice_.Exponential(500));
  flight.arrived_ns = left_ns + plan_.path.DelayNs(Way::kForward, left_ns, dice_);
  flight.answered_ns = flight.arrived_ns + static_cast<int64_t>(dice_.Exponential(10e3));
  const int64_t back_ns =
      flight.answered_ns + plan_.path.DelayNs(Way::kBackward, flight.answered_ns, dice_);
  flight.received_ns = truth_.raw.WhenRunning(back_ns);
  const bool lost = dice_.Chance(plan_.path.loss_chance) || dice_.Chance(plan_.path.loss_chance) ||
                    !reference_.IsUp(flight.arrived_ns) || !AgentIsUp(plan_, flight.received_ns) ||
                    reference_.EpochAt(flight.arrived_ns) != reference_.EpochAt(flight.answered_ns);
  if (lost) return;
  exchanges_.push_back({.send_raw_ns = truth_.raw.Read(flight.sent_ns),
                        .reference_receive_ns = reference_.Read(flight.arrived_ns),
                        .reference_send_ns = reference_.Read(flight.answered_ns),
                        .receive_raw_ns = truth_.raw.Read(flight.received_ns),
                        .reference_epoch = reference_.EpochAt(flight.arrived_ns),
                        .path = ProbePath::kUdp});
  flights_.push_back(flight);
}

void Prober::MoveTo(HostRecords& records, std::vector<HostTruth::Flight>* flights) {
  std::vector<uint32_t> order(exchanges_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return exchanges_[a].receive_raw_ns < exchanges_[b].receive_raw_ns;
  });
  records.evidence.exchanges.reserve(order.size());
  records.realtime.reserve(order.size());
  for (const uint32_t index : order) {
    const ClockExchange& exchange = exchanges_[index];
    records.evidence.exchanges.push_back(exchange);
    records.realtime.push_back({.send_ns = truth_.steered.Realtime(exchange.send_raw_ns),
                                .receive_ns = truth_.steered.Realtime(exchange.receive_raw_ns)});
    if (flights != nullptr) flights->push_back(flights_[index]);
  }
}

ClockSnapshot ReadAll(const HostTruth& truth, int64_t true_ns, Dice& dice) {
  const uint64_t raw_ns = truth.raw.Read(true_ns);
  const uint64_t before = 20 + static_cast<uint64_t>(dice.Exponential(20));
  const uint64_t after = 60 + static_cast<uint64_t>(dice.Exponential(20));
  const Steering& steering = truth.steered.At(raw_ns);
  const double reported_ppm = steering.told ? steering.rate_ppm : 0;
  // What the kernel does: tick for whole steps of 100 ppm beyond the 500 ppm that freq may say.
  const double tick_us = std::abs(reported_ppm) > 500 ? std::round(reported_ppm / 100.0) : 0;
  ClockSnapshot snapshot;
  snapshot.raw_begin_ns = raw_ns - before;
  snapshot.raw_end_ns = raw_ns + after;
  snapshot.realtime_ns = truth.steered.Realtime(raw_ns);
  snapshot.monotonic_ns = truth.steered.Monotonic(raw_ns + 20);
  snapshot.boottime_ns = truth.steered.Monotonic(raw_ns + 40);
  snapshot.frequency = static_cast<int64_t>(std::round((reported_ppm - tick_us * 100.0) * 65536.0));
  snapshot.tick_us = static_cast<uint32_t>(10'000 + static_cast<int>(tick_us));
  snapshot.tai_offset_s = 37;
  return snapshot;
}

void TakeSnapshots(const HostPlan& plan, int64_t duration_ns, const HostTruth& truth, Dice dice,
                   std::vector<ClockSnapshot>& snapshots) {
  std::vector<int64_t> times;
  for (int64_t at = kMillisecond; at < duration_ns; at += plan.snapshot_interval_ns) {
    times.push_back(truth.raw.WhenRunning(at));
  }
  for (const Steering& steering : truth.steered.schedule()) {  // a step wakes the agent
    if (steering.step_ns == 0) continue;
    times.push_back(truth.raw.TimeOf(steering.raw_ns) +
                    static_cast<int64_t>(30e3 + dice.Exponential(50e3)));
  }
  std::sort(times.begin(), times.end());
  for (const int64_t at : times) {
    if (!AgentIsUp(plan, at)) continue;
    ClockSnapshot snapshot = ReadAll(truth, at, dice);
    if (!snapshots.empty() && snapshot.raw_begin_ns <= snapshots.back().raw_end_ns) continue;
    snapshots.push_back(snapshot);
  }
}

void ReportFaults(const HostPlan& plan, const HostTruth& truth, Dice dice,
                  std::vector<ClockEvent>& events) {
  for (const Steering& steering : truth.steered.schedule()) {
    const int64_t at = truth.raw.TimeOf(steering.raw_ns);
    if (steering.step_ns == 0 || !AgentIsUp(plan, at)) continue;
    // Between the last look before and the wake-up that reports it.
    const uint64_t late = static_cast<uint64_t>(30e3 + dice.Exponential(50e3));
    events.push_back({.kind = ClockEventKind::kRealtimeStep,
                      .raw_begin_ns = steering.raw_ns - static_cast<uint64_t>(dice.Between(0, 1e6)),
                      .raw_end_ns = steering.raw_ns + late,
                      .amount_ns = steering.step_ns});
  }
  for (const HostFault& fault : plan.faults) {
    if (!fault.noticed || !AgentIsUp(plan, fault.at_ns)) continue;
    const int64_t after = truth.raw.WhenRunning(fault.at_ns);
    // A heartbeat every 10 ms was the last before, and another notices.
    const int64_t before = fault.at_ns - static_cast<int64_t>(dice.Between(0, 1e7));
    const int64_t noticed = after + static_cast<int64_t>(dice.Between(1e5, 1e7));
    events.push_back({.kind = fault.kind,
                      .raw_begin_ns = truth.raw.Read(before),
                      .raw_end_ns = truth.raw.Read(noticed),
                      .amount_ns = 0});
  }
  std::sort(events.begin(), events.end(), [](const ClockEvent& a, const ClockEvent& b) {
    return a.raw_begin_ns < b.raw_begin_ns;
  });
}

}  // namespace

SimUtcWorld::SimUtcWorld(uint64_t seed, int64_t duration_ns)
    : seed_(seed),
      duration_ns_(duration_ns),
      utc_(PlanUtc(seed), duration_ns, Dice(seed, kUtcClockDice, 1)) {}

UtcReading SimUtcWorld::ReadOnce(const UtcPlan& plan, int64_t true_ns, uint64_t raw_ns,
                                 double bias_ns, Dice& dice) const {
  const double off =
      std::clamp(bias_ns + dice.Normal(plan.bound_ns / 10), -plan.bound_ns, plan.bound_ns);
  const uint64_t middle =
      utc_.Read(true_ns) + static_cast<uint64_t>(std::llround(off + plan.lie_ns));
  // A nanosecond for the rounding of stamps.
  const auto half = static_cast<uint64_t>(std::ceil(plan.bound_ns)) + 1;
  return {plan.source, raw_ns, middle - half, middle + half};
}

std::vector<UtcReading> SimUtcWorld::Read(const std::vector<UtcPlan>& plans, const TrueClock& raw,
                                          Dice dice) const {
  std::vector<UtcReading> readings;
  for (const UtcPlan& plan : plans) {
    const double bias_ns = dice.Between(-plan.bound_ns / 2, plan.bound_ns / 2);
    auto at = static_cast<int64_t>(dice.Between(0, static_cast<double>(plan.interval_ns)));
    for (; at < duration_ns_; at += plan.interval_ns) {
      const int64_t true_ns = raw.WhenRunning(at);
      readings.push_back(ReadOnce(plan, true_ns, raw.Read(true_ns), bias_ns, dice));
    }
  }
  std::stable_sort(readings.begin(), readings.end(), IsBefore);
  return readings;
}

ClockEvidence SimUtcWorld::ReadReferenceHost(const std::vector<UtcPlan>& plans,
                                             const ReferenceClock& reference) const {
  ClockEvidence keeper;
  Dice dice(seed_, kReferenceHostDice);
  for (const UtcPlan& plan : plans) {
    const double bias_ns = dice.Between(-plan.bound_ns / 2, plan.bound_ns / 2);
    for (int64_t at = 0; at < duration_ns_; at += plan.interval_ns) {
      // Its raw is the reference; that it begins at another number changes nothing.
      const uint64_t now_ns = reference.Read(at);
      const ClockExchange tie{now_ns,          now_ns, now_ns, now_ns, reference.EpochAt(at),
                              ProbePath::kPeer};
      keeper.exchanges.push_back(tie);
      keeper.utc.push_back(ReadOnce(plan, at, now_ns, bias_ns, dice));
    }
  }
  std::stable_sort(keeper.utc.begin(), keeper.utc.end(), IsBefore);
  return keeper;
}

int64_t NetworkPath::LeastDelayNs(Way way, int64_t true_ns) const {
  int64_t delay_ns = way == Way::kForward ? forward_ns : backward_ns;
  for (const RouteChange& change : route_changes) {
    if (true_ns < change.at_ns) break;
    delay_ns += way == Way::kForward ? change.forward_ns : change.backward_ns;
  }
  return delay_ns;
}

int64_t NetworkPath::DelayNs(Way way, int64_t true_ns, Dice& dice) const {
  constexpr double kDelayMost = 20e6;
  double added_ns = dice.Exponential(jitter_ns);
  if (dice.Chance(tail_chance)) added_ns += dice.Pareto(tail_least_ns, tail_alpha, kDelayMost);
  if (blocking_chance > 0 && dice.Chance(blocking_chance)) added_ns += dice.Between(0, 1e6);
  for (const Congestion& congestion : congestions) {
    if (congestion.way != way || true_ns < congestion.begin_ns || true_ns >= congestion.end_ns) {
      continue;
    }
    added_ns += static_cast<double>(congestion.delay_ns) * dice.Between(0.9, 1.3);
  }
  return LeastDelayNs(way, true_ns) + static_cast<int64_t>(added_ns);
}

bool IsWithin(std::span<const TimeSpan> spans, int64_t true_ns) {
  return std::any_of(spans.begin(), spans.end(), [&](const TimeSpan& span) {
    return true_ns >= span.begin_ns && true_ns < span.end_ns;
  });
}

Host PlayHost(const HostPlan& plan, const ReferenceClock& reference, int64_t duration_ns,
              uint64_t seed, uint64_t member, bool keep_flights) {
  TrueClock raw(plan.clock, duration_ns, Dice(seed, kClockDice, member));
  SteeredClock steered = MakeSteered(plan, raw);
  Host host{
      .records = {},
      .truth = {
          .raw = std::move(raw), .steered = std::move(steered), .path = plan.path, .flights = {}}};
  Prober prober(plan, reference, host.truth, Dice(seed, kProbeDice, member));
  prober.Run(duration_ns);
  prober.MoveTo(host.records, keep_flights ? &host.truth.flights : nullptr);
  TakeSnapshots(plan, duration_ns, host.truth, Dice(seed, kSnapshotDice, member),
                host.records.evidence.snapshots);
  ReportFaults(plan, host.truth, Dice(seed, kEventDice, member), host.records.evidence.events);
  if (!plan.utc.empty() || !plan.keeper_utc.empty()) {
    const SimUtcWorld utc(seed, duration_ns);
    host.records.evidence.utc = utc.Read(plan.utc, host.truth.raw, Dice(seed, kUtcDice, member));
    host.records.keeper = utc.ReadReferenceHost(plan.keeper_utc, reference);
  }
  return host;
}

}  // namespace neurontrace
