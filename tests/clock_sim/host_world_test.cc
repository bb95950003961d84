// SPDX-License-Identifier: Apache-2.0
// What an agent would have found out in the simulated world is true of it: every exchange satisfies
// the inequality that its type promises, whatever the path does, and nothing else is in the
// records.
#include "tests/clock_sim/host_world.h"

#include <gtest/gtest.h>

#include "tests/clock_sim/host_method.h"
#include "tests/clock_sim/host_scenario.h"
#include "tests/clock_sim/host_score.h"

namespace neurontrace {
namespace {

int64_t Minus(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b); }

Host Play(const HostScenario& scenario, uint64_t seed, uint32_t member) {
  return PlayHost(PlanHost(scenario, seed, member), MakeReference(scenario, seed),
                  scenario.duration_ns, seed, member, /*keep_flights=*/true);
}

TEST(HostWorld, EveryExchangeContainsTruth) {
  for (const HostScenario& scenario : HostScenarios()) {
    const ReferenceClock reference = MakeReference(scenario, 7);
    for (uint32_t member = 0; member < std::min(scenario.hosts, 4u); ++member) {
      const Host host = Play(scenario, 7, member);
      const std::vector<ClockExchange>& exchanges = host.records.evidence.exchanges;
      ASSERT_EQ(exchanges.size(), host.truth.flights.size());
      ASSERT_GT(exchanges.size(), 50u) << scenario.name;
      for (size_t i = 0; i < exchanges.size(); ++i) {
        const ClockExchange& exchange = exchanges[i];
        const HostTruth::Flight& flight = host.truth.flights[i];
        // reference - raw when it was sent, and when the answer came.
        const int64_t at_send = Minus(reference.Read(flight.sent_ns), exchange.send_raw_ns);
        const int64_t at_receipt =
            Minus(reference.Read(flight.received_ns), exchange.receive_raw_ns);
        ASSERT_LE(at_send, Minus(exchange.reference_receive_ns, exchange.send_raw_ns))
            << scenario.name;
        ASSERT_GE(at_receipt, Minus(exchange.reference_send_ns, exchange.receive_raw_ns))
            << scenario.name;
        ASSERT_LE(exchange.send_raw_ns, exchange.receive_raw_ns);
        ASSERT_LE(exchange.reference_receive_ns, exchange.reference_send_ns);
        ASSERT_EQ(exchange.reference_epoch, reference.EpochAt(flight.sent_ns));
      }
    }
  }
}

TEST(HostWorld, ListsAscendInRaw) {
  for (const HostScenario& scenario : HostScenarios()) {
    const Host host = Play(scenario, 11, 1 % scenario.hosts);
    const ClockEvidence& evidence = host.records.evidence;
    for (size_t i = 1; i < evidence.exchanges.size(); ++i) {
      ASSERT_LE(evidence.exchanges[i - 1].receive_raw_ns, evidence.exchanges[i].receive_raw_ns);
    }
    for (size_t i = 1; i < evidence.snapshots.size(); ++i) {
      ASSERT_LT(evidence.snapshots[i - 1].raw_end_ns, evidence.snapshots[i].raw_begin_ns);
    }
    for (size_t i = 1; i < evidence.events.size(); ++i) {
      ASSERT_LE(evidence.events[i - 1].raw_begin_ns, evidence.events[i].raw_begin_ns);
    }
  }
}

TEST(HostWorld, SnapshotsBracketTheOtherClocks) {
  const HostScenario& scenario = *FindHostScenario("S6");
  const Host host = Play(scenario, 3, 0);
  ASSERT_GT(host.records.evidence.snapshots.size(), 2000u);
  for (const ClockSnapshot& snapshot : host.records.evidence.snapshots) {
    ASSERT_LE(Minus(snapshot.raw_end_ns, snapshot.raw_begin_ns), kMicrosecond);
    const bool stepped = host.truth.steered.At(snapshot.raw_begin_ns).raw_ns !=
                         host.truth.steered.At(snapshot.raw_end_ns).raw_ns;
    if (stepped) continue;
    ASSERT_LE(host.truth.steered.Realtime(snapshot.raw_begin_ns), snapshot.realtime_ns);
    ASSERT_GE(host.truth.steered.Realtime(snapshot.raw_end_ns), snapshot.realtime_ns);
    ASSERT_LE(host.truth.steered.Monotonic(snapshot.raw_begin_ns), snapshot.monotonic_ns);
    ASSERT_GE(host.truth.steered.Monotonic(snapshot.raw_end_ns), snapshot.monotonic_ns);
  }
}

TEST(HostWorld, EventsBracketTheFaultsThatWereNoticed) {
  const HostScenario& told = *FindHostScenario("S5-told");
  for (uint32_t member = 0; member < told.hosts; ++member) {
    const HostPlan plan = PlanHost(told, 5, member);
    const Host host = Play(told, 5, member);
    ASSERT_EQ(host.records.evidence.events.size(), 1u);
    const ClockEvent& event = host.records.evidence.events[0];
    const int64_t at_ns = plan.clock.jumps[0].at_ns;
    EXPECT_LE(event.raw_begin_ns, host.truth.raw.Read(at_ns - 1));
    EXPECT_GE(event.raw_end_ns, host.truth.raw.Read(host.truth.raw.WhenRunning(at_ns)));
  }
  const Host untold = Play(*FindHostScenario("S5"), 5, 0);
  EXPECT_TRUE(untold.records.evidence.events.empty());
}

TEST(HostWorld, TheSameSeedGivesTheSameRecords) {
  const HostScenario& scenario = *FindHostScenario("S2");
  const Host a = Play(scenario, 4, 2);
  const Host b = Play(scenario, 4, 2);
  EXPECT_EQ(a.records.evidence.exchanges, b.records.evidence.exchanges);
  EXPECT_EQ(a.records.evidence.snapshots, b.records.evidence.snapshots);
  EXPECT_NE(a.records.evidence.exchanges, Play(scenario, 5, 2).records.evidence.exchanges);
}

// A bound that holds by construction must come out as one, and one that is too small must not.
HostMapping MapWithBound(const HostRecords& records, std::span<const Stamp> stamps, double bound) {
  HostMapping mapping;
  const ClockExchange& first = records.evidence.exchanges.front();
  const uint64_t offset = first.reference_receive_ns - first.send_raw_ns;
  for (const Stamp& stamp : stamps) {
    mapping.mapped.push_back(
        {.reference_ns = stamp.raw_ns + offset, .bound_ns = bound, .likely_bound_ns = bound});
  }
  return mapping;
}

TEST(HostTrial, DistinguishesValidFromViolatedBounds) {
  const HostMethod methods[] = {
      {.name = "wide",
       .map = [](const HostRecords& records, bool,
                 std::span<const Stamp> stamps) { return MapWithBound(records, stamps, 1e9); }},
      {.name = "narrow",
       .map = [](const HostRecords& records, bool,
                 std::span<const Stamp> stamps) { return MapWithBound(records, stamps, 100); }},
  };
  const std::vector<HostScore> scores = RunHostTrial(*FindHostScenario("S1"), methods, 1);
  EXPECT_EQ(scores[0].covered.Percent(), 100.0);
  EXPECT_EQ(scores[0].pairs_covered.Percent(), 100.0);
  EXPECT_LT(scores[1].covered.Percent(), 5.0);
  EXPECT_LT(scores[1].pairs_covered.Percent(), 5.0);
  EXPECT_EQ(scores[1].misses_flagged.held, 0u);
  EXPECT_GT(scores[0].pair.Quantile(0.5), 100e3);  // a rate of 1 does that in minutes
}

TEST(HostTrial, BaselinesAreAsGoodAsTheirPeers) {
  const std::vector<HostScore> scores = RunHostTrial(*FindHostScenario("S1"), HostBaselines(), 1);
  EXPECT_LT(scores[1].pair.Quantile(0.99), 60e3);  // min-of-8, at 15 ppm and 2 bursts a second
  EXPECT_LT(scores[3].pair.Quantile(0.99), 30e3);
  EXPECT_LT(scores[4].pair.Quantile(0.99), 60e3);
  EXPECT_EQ(scores[4].covered.Percent(), 100.0);  // the hull is right while the rate is constant
}

}  // namespace
}  // namespace neurontrace
