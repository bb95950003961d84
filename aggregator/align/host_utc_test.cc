// SPDX-License-Identifier: Apache-2.0
// Goal: UTC helps where it is right, and does no harm where it is wrong. Method: hosts and a
// keeper of the reference, simulated so that the truth is known, by seeds that a failure prints.
#include "aggregator/align/utc/host_utc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/host/host_world_test_support.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/align/utc/reference_utc.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// UTC in a HostWorld: the reference is slow by 12 ppm. Its keeper, and hosts, read it from sources
// that promise to be within `bound_ns`, and are off by up to half of that.
struct UtcWorld {
  static constexpr uint64_t kOwnRawBegin = 7'200'000'000'000;
  static constexpr uint64_t kOwnOffset = HostWorld::kReferenceBegin - kOwnRawBegin;

  explicit UtcWorld(uint64_t seed) : random(seed) {}

  static uint64_t UtcAt(uint64_t reference_ns) {
    const auto since = static_cast<int64_t>(reference_ns - HostWorld::kReferenceBegin);  // or until
    return reference_ns + 2'500'000'000 + static_cast<uint64_t>(since / 1'000'000 * 12);
  }

  // A source's reading at this UTC. `lie_ns`: how far it is beyond the error that it promises.
  UtcReading Reading(UtcSource source, uint64_t raw_ns, uint64_t utc_ns, double lie_ns = 0) {
    const double off =
        std::uniform_real_distribution<double>(-bound_ns / 2, bound_ns / 2)(random) + lie_ns;
    const uint64_t middle = utc_ns + static_cast<uint64_t>(std::llround(off));
    const auto half = static_cast<uint64_t>(bound_ns);
    return {source, raw_ns, middle - half, middle + half};
  }
  // Of the host, every five seconds.
  void Read(const HostWorld& world, UtcSource source, double seconds, ClockEvidence& evidence,
            double lie_ns = 0) {
    for (double s = 1.3; s < seconds; s += interval_s) {
      const uint64_t raw = world.RawAt(s);
      evidence.utc.push_back(Reading(source, raw, UtcAt(world.TruthAt(raw)), lie_ns));
    }
    Sort(evidence);
  }
  // Of the keeper, from a minute before the host's first second to a minute after its last.
  void ReadOwn(UtcSource source, double seconds, ClockEvidence& own, double lie_ns = 0) {
    for (double s = -60; s < seconds + 60; s += interval_s) {
      const auto raw = static_cast<uint64_t>(static_cast<double>(kOwnRawBegin) + s * 1e9);
      own.exchanges.push_back({raw, raw + kOwnOffset, raw + kOwnOffset, raw, 1, {}});
      own.utc.push_back(Reading(source, raw, UtcAt(raw + kOwnOffset), lie_ns));
    }
    Sort(own);
  }

  static void Sort(ClockEvidence& evidence) {
    std::stable_sort(evidence.utc.begin(), evidence.utc.end(),
                     [](const auto& a, const auto& b) { return a.raw_ns < b.raw_ns; });
  }

  std::mt19937_64 random;
  double bound_ns = 5'000;
  double interval_s = 5;
};

constexpr double kUtcSeconds = 40;

auto Words(const std::string& words) {
  return ::testing::Field(&ClockFinding::words, HasSubstr(words));
}

ReferenceUtc OwnUtc(UtcWorld& utc, UtcSource source = UtcSource::kPhc, double lie_ns = 0) {
  ClockEvidence own;
  utc.ReadOwn(source, kUtcSeconds, own, lie_ns);
  return ReferenceUtcOf({&own, 1});
}

TEST(HostUtcTest, ShowsTheAsymmetryThatProbesCannot) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    UtcWorld utc(seed);
    world.forward_ns = seed % 2 == 0 ? 230'000 : 30'000;
    world.backward_ns = seed % 2 == 0 ? 30'000 : 230'000;
    ClockEvidence evidence = world.Evidence(kUtcSeconds);
    const ReferenceUtc reference = OwnUtc(utc);
    const ClockModel without = FitHostClock(evidence, {}, reference);
    utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
    const ClockModel with = FitHostClock(evidence, {}, reference);
    ExpectHolds(world, kUtcSeconds, with);
    AtTimes(world, kUtcSeconds, [&](uint64_t raw) {
      if (raw > world.RawAt(kUtcSeconds)) return;
      const ClockEstimate before = EvaluateClock(without, raw).estimate;
      const ClockEstimate after = EvaluateClock(with, raw).estimate;
      EXPECT_GE(std::abs(world.ErrorOf(raw, before.y_ns)), 90'000);
      EXPECT_LE(std::abs(world.ErrorOf(raw, after.y_ns)), 6'000);
      EXPECT_LE(std::abs(world.ErrorOf(raw, after.y_ns)),
                static_cast<double>(after.likely_bound_ns));
      EXPECT_LE(after.likely_bound_ns, 20'000u);
    });
    EXPECT_THAT(with.findings, Contains(Words(seed % 2 == 0 ? "more to the reference than back"
                                                            : "less to the reference than back")));
    EXPECT_EQ(with.evidence_rejected, 0u);
  }
}

TEST(HostUtcTest, GivesNoUtcWithoutReferenceUtc) {
  HostWorld world(3);
  UtcWorld utc(3);
  ClockEvidence evidence = world.Evidence(kUtcSeconds);
  const ClockModel without = FitHostClock(evidence, {});
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  EXPECT_EQ(FitHostClock(evidence, {}), without);
}

// Any lie, of anybody, at any time.
TEST(HostUtcTest, FalseSourceNeverViolatesBound) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    UtcWorld utc(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    world.forward_ns = 20'000 + 80'000 * unit(world.random);
    const auto lie = [&] {
      if (unit(world.random) < 0.3) return 0.0;
      const double by_ns = std::pow(10, 3 + 7 * unit(world.random));
      return unit(world.random) < 0.5 ? by_ns : -by_ns;
    };
    ClockEvidence evidence = world.Evidence(kUtcSeconds);
    ClockEvidence own;
    for (const UtcSource source :
         {UtcSource::kPhc, UtcSource::kClockBound, UtcSource::kChrony, UtcSource::kUnspecified}) {
      utc.bound_ns = std::pow(10, 2 + 4 * unit(world.random));
      if (unit(world.random) < 0.7) utc.ReadOwn(source, kUtcSeconds, own, lie());
      if (unit(world.random) < 0.7) utc.Read(world, source, kUtcSeconds, evidence, lie());
      if (unit(world.random) < 0.3) utc.Read(world, source, kUtcSeconds, evidence, lie());
    }
    for (UtcReading& reading : evidence.utc) {  // and nonsense
      if (unit(world.random) < 0.05) reading.utc_earliest_ns = world.random();
      if (unit(world.random) < 0.05) reading.utc_latest_ns = world.random();
      if (unit(world.random) < 0.02) reading.raw_ns = world.random();
    }
    ExpectHolds(world, kUtcSeconds, FitHostClock(evidence, {}, ReferenceUtcOf({&own, 1})));
  }
}

TEST(HostUtcTest, RejectsAndReportsReadingsDisprovedByProbes) {
  for (const double lie_ns : {-90'000.0, 500'000.0, 37e9}) {
    HostWorld world(4);
    UtcWorld utc(4);
    ClockEvidence evidence = world.Evidence(kUtcSeconds);
    const ClockModel without = FitHostClock(evidence, {});
    utc.Read(world, UtcSource::kClockBound, kUtcSeconds, evidence, lie_ns);
    const ClockModel with = FitHostClock(evidence, {}, OwnUtc(utc));
    EXPECT_EQ(with.segments, without.segments);
    EXPECT_EQ(with.evidence_rejected, evidence.utc.size());
    ASSERT_EQ(with.findings.size(), 1u);
    EXPECT_THAT(with.findings,
                ElementsAre(AllOf(
                    ::testing::Field(&ClockFinding::kind, ClockFindingKind::kRejectedEvidence),
                    Words("UTC from clockbound (the reference's from phc) contradicts the bounds "
                          "of the probes"))));
    // What the promises and the round trip allow it to be off is not counted.
    EXPECT_NEAR(static_cast<double>(with.findings[0].amount_ns), lie_ns,
                60'000 + 2e-5 * std::abs(lie_ns));
  }
}

TEST(HostUtcTest, BelievesTheMoreTrustedSource) {
  HostWorld world(5);
  UtcWorld utc(5);
  ClockEvidence evidence = world.Evidence(kUtcSeconds);
  const ReferenceUtc reference = OwnUtc(utc);
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  const ClockModel with_phc = FitHostClock(evidence, {}, reference);
  utc.Read(world, UtcSource::kChrony, kUtcSeconds, evidence, 25'000);  // probes would let it pass
  const ClockModel model = FitHostClock(evidence, {}, reference);
  EXPECT_EQ(model.segments, with_phc.segments);
  EXPECT_THAT(
      model.findings,
      ElementsAre(Words("UTC from chrony (the reference's from phc) contradicts UTC from phc")));
}

TEST(HostUtcTest, RejectsWrongReading) {
  HostWorld world(6);
  UtcWorld utc(6);
  world.forward_ns = 130'000;
  ClockEvidence evidence = world.Evidence(kUtcSeconds);
  const ReferenceUtc reference = OwnUtc(utc);
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  evidence.utc.front().utc_earliest_ns +=
      70'000;  // the first: what follows must not be judged by it
  evidence.utc.front().utc_latest_ns += 70'000;
  const ClockModel model = FitHostClock(evidence, {}, reference);
  EXPECT_EQ(model.evidence_rejected, 1u);
  EXPECT_THAT(model.findings, Contains(Words("contradicts its other readings")));
  const uint64_t raw = world.RawAt(kUtcSeconds / 2);
  EXPECT_LE(std::abs(world.ErrorOf(raw, EvaluateClock(model, raw).estimate.y_ns)), 6'000);
}

// Of ways that are equally long honest UTC, however good, takes nothing away.
TEST(HostUtcTest, HonestUtcNeverWidens) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    UtcWorld utc(seed);
    utc.bound_ns = std::pow(10, 2 + 0.06 * static_cast<double>(seed));
    ClockEvidence evidence = world.Evidence(kUtcSeconds);
    ClockModel less = FitHostClock(evidence, {});
    const ReferenceUtc reference = OwnUtc(utc);
    for (const UtcSource source : {UtcSource::kChrony, UtcSource::kPhc}) {
      utc.Read(world, source, kUtcSeconds, evidence);
      const ClockModel more = FitHostClock(evidence, {}, reference);
      EXPECT_THAT(more.findings, IsEmpty());
      ExpectHolds(world, kUtcSeconds, more);
      AtTimes(world, kUtcSeconds, [&](uint64_t raw) {
        const ClockEstimate a = EvaluateClock(less, raw).estimate;
        const ClockEstimate b = EvaluateClock(more, raw).estimate;
        const double moved = std::abs(static_cast<double>(static_cast<int64_t>(b.y_ns - a.y_ns)));
        // But for where knots lie: a line has the bound of its worst place.
        EXPECT_LE(static_cast<double>(b.bound_ns), 1.1 * static_cast<double>(a.bound_ns) + moved);
        EXPECT_LE(static_cast<double>(b.likely_bound_ns),
                  1.3 * static_cast<double>(a.likely_bound_ns) + 500);
        EXPECT_LE(moved, static_cast<double>(a.likely_bound_ns));
      });
      less = more;
    }
  }
}

TEST(HostUtcTest, KnowsMoreWhileNoProbeComesBack) {
  HostWorld world(7);
  UtcWorld utc(7);
  ClockEvidence evidence;
  world.Probe(0, 10, evidence);
  world.Probe(kUtcSeconds - 10, kUtcSeconds, evidence);
  const uint64_t raw = world.RawAt(kUtcSeconds / 2);
  const ReferenceUtc reference = OwnUtc(utc);
  const ClockEstimate without = EvaluateClock(FitHostClock(evidence, {}, reference), raw).estimate;
  utc.interval_s = 2;
  utc.bound_ns = 1'000;
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  const ClockModel model = FitHostClock(evidence, {}, reference);
  ExpectHolds(world, kUtcSeconds, model);
  EXPECT_LE(EvaluateClock(model, raw).estimate.likely_bound_ns * 10, without.likely_bound_ns * 9);
}

TEST(HostUtcTest, TheOrderOfArrivalChangesNothing) {
  HostWorld world(8);
  UtcWorld utc(8);
  world.forward_ns = 130'000;
  ClockEvidence evidence = world.Evidence(kUtcSeconds);
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  utc.Read(world, UtcSource::kChrony, kUtcSeconds, evidence, 31'000);
  ClockEvidence own;
  utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
  utc.ReadOwn(UtcSource::kChrony, kUtcSeconds, own);
  const ClockModel model = FitHostClock(evidence, {}, ReferenceUtcOf({&own, 1}));
  for (int i = 0; i < 5; ++i) {
    std::shuffle(evidence.utc.begin(), evidence.utc.end(), utc.random);
    std::shuffle(own.utc.begin(), own.utc.end(), utc.random);
    std::shuffle(own.exchanges.begin(), own.exchanges.end(), utc.random);
    EXPECT_EQ(FitHostClock(evidence, {}, ReferenceUtcOf({&own, 1})), model);
  }
}

TEST(HostUtcTest, ShiftedClocksGiveTheShiftedModel) {
  constexpr uint64_t kRawShift = 123'456'789'012'345;
  constexpr uint64_t kReferenceShift = 98'765'432'109'876'543;
  constexpr uint64_t kUtcShift = 37'000'000'017;
  HostWorld world(9);
  UtcWorld utc(9);
  world.forward_ns = 130'000;
  ClockEvidence evidence = world.Evidence(kUtcSeconds);
  utc.Read(world, UtcSource::kPhc, kUtcSeconds, evidence);
  ClockEvidence own;
  utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
  ClockModel model = FitHostClock(evidence, {}, ReferenceUtcOf({&own, 1}));
  for (ClockExchange& e : evidence.exchanges) {
    e.send_raw_ns += kRawShift;
    e.receive_raw_ns += kRawShift;
    e.reference_receive_ns += kReferenceShift;
    e.reference_send_ns += kReferenceShift;
  }
  for (ClockExchange& e : own.exchanges) {
    e.reference_receive_ns += kReferenceShift;
    e.reference_send_ns += kReferenceShift;
  }
  for (ClockEvidence* of : {&evidence, &own}) {
    for (UtcReading& reading : of->utc) {
      reading.raw_ns += of == &evidence ? kRawShift : 0;
      reading.utc_earliest_ns += kUtcShift;
      reading.utc_latest_ns += kUtcShift;
    }
  }
  for (ClockKnot& knot : model.segments.front().knots) {
    knot.x_ns += kRawShift;
    knot.y_ns += kReferenceShift;
  }
  for (ClockFinding& finding : model.findings) {
    finding.x_begin_ns += kRawShift;
    finding.x_end_ns += kRawShift;
  }
  EXPECT_EQ(FitHostClock(evidence, {}, ReferenceUtcOf({&own, 1})), model);
}

TEST(ReferenceUtcTest, IsIntersectionOfBounds) {
  UtcWorld utc(1);
  ClockEvidence own;
  utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
  const ReferenceUtc reference = ReferenceUtcOf({&own, 1});
  ASSERT_EQ(reference.epochs.size(), 1u);
  EXPECT_THAT(reference.epochs[0].sources, ElementsAre(UtcSource::kPhc));
  EXPECT_THAT(reference.epochs[0].utc.findings, IsEmpty());
  for (double s = 0; s < kUtcSeconds; s += 0.77) {
    const uint64_t y = HostWorld::kReferenceBegin + static_cast<uint64_t>(s * 1e9);
    const uint64_t at = UtcWorld::UtcAt(y);
    const auto times =
        ReferenceTimesOf(reference.epochs[0], {UtcSource::kPhc, 1, at - 50, at + 50});
    ASSERT_TRUE(times.has_value());
    EXPECT_LE(times->earliest_ns, y);
    EXPECT_GE(times->latest_ns, y);
    EXPECT_LE(times->latest_ns - times->earliest_ns, 13'000u);
  }
  // A year away nobody knows.
  const uint64_t far = UtcWorld::UtcAt(HostWorld::kReferenceBegin) + 31'536'000'000'000'000;
  EXPECT_FALSE(ReferenceTimesOf(reference.epochs[0], {UtcSource::kPhc, 1, far, far}).has_value());
}

TEST(ReferenceUtcTest, LeavesOutALessTrustedSourceThatContradicts) {
  UtcWorld utc(2);
  ClockEvidence own;
  utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
  const ReferenceUtc alone = ReferenceUtcOf({&own, 1});
  utc.ReadOwn(UtcSource::kChrony, kUtcSeconds, own, 1e6);
  own.utc.front().utc_latest_ns += 80'000;  // and the first of the trusted one is off
  own.utc.front().utc_earliest_ns += 80'000;
  const ReferenceUtc both = ReferenceUtcOf({&own, 1});
  ASSERT_EQ(both.epochs.size(), 1u);
  EXPECT_THAT(both.epochs[0].sources, ElementsAre(UtcSource::kPhc));
  EXPECT_THAT(both.epochs[0].utc.findings, Contains(Words("UTC readings from chrony are ignored")));
  const uint64_t y = HostWorld::kReferenceBegin + 20'000'000'000;
  EXPECT_NEAR(static_cast<double>(EvaluateClock(both.epochs[0].utc, y).estimate.y_ns -
                                  UtcWorld::UtcAt(y) + 100'000),
              1e5, 5'000);
}

TEST(ReferenceUtcTest, MoreReadingsNeverWiden) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    UtcWorld utc(seed);
    ClockEvidence own;
    utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
    ClockEvidence fewer = own;
    std::erase_if(fewer.utc, [&, first = own.utc.front()](const UtcReading& reading) {
      return reading != first && reading != own.utc.back() && utc.random() % 2 == 0;
    });
    const ReferenceUtc few = ReferenceUtcOf({&fewer, 1});
    const ReferenceUtc many = ReferenceUtcOf({&own, 1});
    for (double s = 0; s < kUtcSeconds; s += 0.77) {
      const uint64_t at =
          UtcWorld::UtcAt(HostWorld::kReferenceBegin + static_cast<uint64_t>(s * 1e9));
      const auto a = ReferenceTimesOf(few.epochs[0], {UtcSource::kPhc, 1, at, at});
      const auto b = ReferenceTimesOf(many.epochs[0], {UtcSource::kPhc, 1, at, at});
      ASSERT_TRUE(a.has_value() && b.has_value());
      // But for where knots lie: a line has the bound of its worst place.
      const uint64_t width_ns = a->latest_ns - a->earliest_ns;
      EXPECT_LE(b->latest_ns - b->earliest_ns, width_ns + width_ns / 5);
    }
  }
}

TEST(ReferenceUtcTest, KeepsEpochsApart) {
  UtcWorld utc(3);
  ClockEvidence own;
  utc.ReadOwn(UtcSource::kPhc, kUtcSeconds, own);
  const size_t half = own.exchanges.size() / 2;
  for (size_t i = half; i < own.exchanges.size(); ++i) {  // an aggregator with another offset
    own.exchanges[i].reference_epoch = 2;
    own.exchanges[i].reference_receive_ns += 1'000'000;
    own.exchanges[i].reference_send_ns += 1'000'000;
  }
  const ReferenceUtc reference = ReferenceUtcOf({&own, 1});
  ASSERT_EQ(reference.epochs.size(), 2u);
  EXPECT_EQ(reference.Find(3), nullptr);
  const uint64_t y = HostWorld::kReferenceBegin + 20'000'000'000;
  for (const uint32_t epoch : {1u, 2u}) {
    ASSERT_NE(reference.Find(epoch), nullptr);
    EXPECT_THAT(reference.Find(epoch)->utc.findings, IsEmpty());
    const auto of = static_cast<double>(
        EvaluateClock(reference.Find(epoch)->utc, y + (epoch - 1) * 1'000'000).estimate.y_ns -
        UtcWorld::UtcAt(y) + 100'000);
    EXPECT_NEAR(of, 1e5, 10'000);
  }
}

}  // namespace
}  // namespace neurontrace
