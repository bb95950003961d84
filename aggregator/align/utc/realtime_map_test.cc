// SPDX-License-Identifier: Apache-2.0
// Goal: stamps of REALTIME come to the reference within their bounds, through slews and steps, and
// maps never run backwards. Method: a model that is exact, and snapshots of a REALTIME that is
// known.
#include "aggregator/align/utc/realtime_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <utility>

#include "lib/base/random.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// UnionOfAll gives to the bit what uniting list after list gives, without its square of the lists'
// number: compared with just that, and at sizes at which it would take minutes.

using Lists = std::vector<std::vector<ClockLine>>;

constexpr uint64_t kRaw = 1'000'000'000'000;
constexpr uint64_t kRealtime = 1'700'000'000'000'000'000;
constexpr uint64_t kMapReference = 1'750'000'000'000'000'000;

// The reference runs like raw; REALTIME 10 ppm faster, by 500 ppm more from second 20 to 36, and is
// set ahead by `step_ns` at second 50.03. chrony slews it by 8 ms and 83,333 ppm from
// `fast_slew_s` on, if that is not 0.
struct World {
  int64_t step_ns = 0;
  double fast_slew_s = 0;
  bool slews_quietly = true;

  uint64_t RealtimeAt(uint64_t raw) const {
    const double s = static_cast<double>(static_cast<int64_t>(raw - kRaw)) * 1e-9;
    const double slewed = std::clamp(s - 20, 0.0, 16.0);
    const double fast = fast_slew_s == 0 ? 0 : 83'333e3 * std::clamp(s - fast_slew_s, 0.0, 0.096);
    const int64_t step = s >= 50.03 ? step_ns : 0;
    return kRealtime + (raw - kRaw) +
           static_cast<uint64_t>(
               std::llround(10e3 * s + (slews_quietly ? 500e3 * slewed : 0) + fast) + step);
  }
  uint64_t ReferenceAt(uint64_t raw) const { return kMapReference + (raw - kRaw); }

  ClockModel Model() const {
    ClockModel model;
    model.segments.push_back(
        {SegmentCause::kBegin,
         {{kRaw, kMapReference, 100, 100},
          {kRaw + 60 * kNsPerSecond, kMapReference + 60 * kNsPerSecond, 100, 100}}});
    return model;
  }
  std::vector<ClockSnapshot> Snapshots() const {
    std::vector<ClockSnapshot> snapshots;
    for (uint64_t raw = kRaw; raw <= kRaw + 60 * kNsPerSecond; raw += kNsPerSecond / 10) {
      snapshots.push_back(
          {.raw_begin_ns = raw - 50, .raw_end_ns = raw + 50, .realtime_ns = RealtimeAt(raw)});
    }
    return snapshots;
  }
  std::vector<ClockEvent> Events() const {
    if (step_ns == 0) return {};
    const uint64_t at = kRaw + 50'030'000'000;
    return {{ClockEventKind::kRealtimeStep, at - 1'000'000, at + 80'000, step_ns}};
  }
};

double Minus(uint64_t a, uint64_t b) { return static_cast<double>(static_cast<int64_t>(a - b)); }

void ExpectHolds(const World& world, const ClockMap& map) {
  uint64_t last = 0;
  uint64_t last_stamp = 0;
  // Behind the model's begin by what a reading can be off.
  for (uint64_t raw = kRaw + 1'000'000; raw < kRaw + 60 * kNsPerSecond; raw += 7'654'321) {
    const uint64_t stamp = world.RealtimeAt(raw);
    const uint64_t mapped = map.ToReference(stamp);
    const auto bound = map.ErrorBoundNs(stamp);
    ASSERT_TRUE(bound.has_value()) << raw - kRaw;
    ASSERT_LE(std::abs(Minus(mapped, world.ReferenceAt(raw))), static_cast<double>(*bound))
        << raw - kRaw;
    if (stamp > last_stamp) {
      ASSERT_GE(mapped, last) << raw - kRaw;
      last = mapped;
      last_stamp = stamp;
    }
  }
}

TEST(RealtimeMapTest, HoldsThroughUnreportedSlew) {
  const World world;
  const ClockMap map = RealtimeMapOf(world.Model(), world.Snapshots(), {});
  ExpectHolds(world, map);
  // Far from where the rate changes it is nearly as good as the readings.
  for (const uint64_t s : {10, 28, 45}) {
    EXPECT_LT(*map.ErrorBoundNs(world.RealtimeAt(kRaw + s * kNsPerSecond)), 600u) << s;
  }
}

TEST(RealtimeMapTest, HoldsThroughAFastSlewWhereverItsSnapshotsAre) {
  for (int i = 0; i < 50; ++i) {
    World world;
    world.fast_slew_s = 40 + 0.0021 * i;
    SCOPED_TRACE(world.fast_slew_s);
    const ClockMap map = RealtimeMapOf(world.Model(), world.Snapshots(), {});
    ExpectHolds(world, map);
    for (uint64_t ms = 39'800; ms < 40'500; ++ms) {
      const uint64_t raw = kRaw + ms * 1'000'000;
      const uint64_t stamp = world.RealtimeAt(raw);
      ASSERT_LE(std::abs(Minus(map.ToReference(stamp), world.ReferenceAt(raw))),
                static_cast<double>(map.ErrorBoundNs(stamp).value()))
          << ms;
    }
    EXPECT_LT(*map.ErrorBoundNs(world.RealtimeAt(kRaw + 45 * kNsPerSecond)), 600u);
  }
}

// Snapshots once a second, as an agent keeps them, on a host whose processors are busy: of
// `preempted` in a hundred readings the thread was preempted for up to a millisecond, anywhere in
// the reading. Each is honest: REALTIME had the value of the snapshot at some moment of it. The
// outermost two are not preempted: behind the last good reading a slew may begin, and no bound can
// be the usual one.
std::vector<ClockSnapshot> BusySnapshots(const World& world, int preempted, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](uint64_t most) { return random() % (most + 1); };
  std::vector<ClockSnapshot> snapshots;
  for (uint64_t raw = kRaw - kNsPerSecond; raw <= kRaw + 61 * kNsPerSecond; raw += kNsPerSecond) {
    const bool is_outermost = raw < kRaw || raw > kRaw + 60 * kNsPerSecond;
    const bool is_preempted = !is_outermost && up_to(99) < static_cast<uint64_t>(preempted);
    const uint64_t length = is_preempted ? 10'000 + up_to(990'000) : 60 + up_to(100);
    const uint64_t begin = raw - length / 2;
    const uint64_t when = begin + up_to(length);
    snapshots.push_back({.raw_begin_ns = begin,
                         .raw_end_ns = begin + length,
                         .realtime_ns = world.RealtimeAt(when)});
  }
  return snapshots;
}

// The greatest bound, but for the outermost seconds, whose lines have one neighbour.
uint64_t WorstBoundNs(const World& world, const ClockMap& map) {
  uint64_t worst = 0;
  for (uint64_t ms = 3'000; ms < 57'000; ms += 7) {
    worst = std::max(worst, map.ErrorBoundNs(world.RealtimeAt(kRaw + ms * 1'000'000)).value());
  }
  return worst;
}

TEST(RealtimeMapTest, ABusyHostHasBoundsUpToTenTimesTheUsualOne) {
  World world;
  world.slews_quietly = false;
  const uint64_t usual =
      WorstBoundNs(world, RealtimeMapOf(world.Model(), BusySnapshots(world, 0, 1), {}));
  EXPECT_LT(usual, 2'000u);
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const int preempted = static_cast<int>(seed % 21);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", preempted " << preempted << " %");
    const ClockMap map = RealtimeMapOf(world.Model(), BusySnapshots(world, preempted, seed), {});
    ExpectHolds(world, map);
    ASSERT_LE(WorstBoundNs(world, map), 10 * usual);
  }
}

// A slew is no preempted reading: the bounds hold through it on a busy host, too.
TEST(RealtimeMapTest, ABusyHostHidesNoSlew) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    World world;
    world.fast_slew_s = seed % 4 == 0 ? 0 : 5 + 0.237 * static_cast<double>(seed);
    ExpectHolds(world, RealtimeMapOf(world.Model(), BusySnapshots(world, 25, seed), {}));
    const World step{seed % 2 == 0 ? 7'000'000 : -7'000'000};
    ExpectHolds(step, RealtimeMapOf(step.Model(), BusySnapshots(step, 25, seed), step.Events()));
  }
}

TEST(RealtimeMapTest, StampsThatComeTwiceAreWithinTheBound) {
  const World world{-5'000'000};
  const ClockMap map = RealtimeMapOf(world.Model(), world.Snapshots(), world.Events());
  ExpectHolds(world, map);
  const uint64_t twice = world.RealtimeAt(kRaw + 50'030'000'000) + 2'000'000;
  EXPECT_NEAR(static_cast<double>(*map.ErrorBoundNs(twice)), 2'500'000, 600'000);
  EXPECT_LT(*map.ErrorBoundNs(world.RealtimeAt(kRaw + 55 * kNsPerSecond)), 600u);
}

TEST(RealtimeMapTest, StampsFromLongBeforeStayAsRecorded) {
  for (const int64_t step_ns : {-5'000'000, 5'000'000}) {
    const World world{step_ns};
    const ClockMap map = RealtimeMapOf(world.Model(), world.Snapshots(), world.Events());
    const uint64_t long_ago = world.RealtimeAt(kRaw) - 300 * 86'400 * kNsPerSecond;
    EXPECT_EQ(map.ToReference(long_ago), long_ago);
    EXPECT_FALSE(map.ErrorBoundNs(long_ago).has_value());
    // And in between nothing runs back.
    uint64_t before = 0;
    for (uint64_t ago_s = 20'000; ago_s > 0; ago_s -= 100) {
      const uint64_t at = map.ToReference(world.RealtimeAt(kRaw) - ago_s * kNsPerSecond);
      EXPECT_GE(at, before) << ago_s;
      before = at;
    }
  }
}

// As agents report a step: from the begin of the reading before it to the end of the one after it,
// and both are kept.
TEST(RealtimeMapTest, KnowsBothSidesOfReportedStep) {
  for (const int64_t step_ns : {-5'000'000, 8'000'000}) {
    const World world{step_ns};
    std::vector<ClockSnapshot> snapshots;
    for (const ClockSnapshot& snapshot : world.Snapshots()) {
      if ((snapshot.raw_begin_ns + 50 - kRaw) % kNsPerSecond == 0) snapshots.push_back(snapshot);
    }
    const uint64_t step = kRaw + 50'030'000'000;
    const uint64_t around[] = {step - 10'000'000, step + 80'000};
    auto at = snapshots.begin() + 51;
    for (const uint64_t raw : around) {
      at = 1 + snapshots.insert(at, {.raw_begin_ns = raw - 50,
                                     .raw_end_ns = raw + 50,
                                     .realtime_ns = world.RealtimeAt(raw)});
    }
    const std::vector<ClockEvent> events = {
        {ClockEventKind::kRealtimeStep, around[0] - 50, around[1] + 50, step_ns}};
    const ClockMap map = RealtimeMapOf(world.Model(), snapshots, events);
    ExpectHolds(world, map);
    EXPECT_EQ(RealtimeIntervalsOf(world.Model(), snapshots, events).size(), 2u);
    EXPECT_LT(*map.ErrorBoundNs(world.RealtimeAt(step - 20'000'000)), 2'000u) << step_ns;
    EXPECT_LT(*map.ErrorBoundNs(world.RealtimeAt(step + 20'000'000)), 2'000u) << step_ns;
  }
}

TEST(RealtimeMapTest, KnownSideOfStepIsUnambiguous) {
  const World world{-5'000'000};
  const auto stretches = RealtimeIntervalsOf(world.Model(), world.Snapshots(), world.Events());
  ASSERT_EQ(stretches.size(), 2u);
  for (const uint64_t raw : {kRaw + 50'020'000'000, kRaw + 50'040'000'000}) {
    const RealtimeInterval& stretch = stretches[raw < kRaw + 50'030'000'000 ? 0 : 1];
    const ClockMap map = MapAlong(stretch.lines);
    const uint64_t stamp = world.RealtimeAt(raw);
    const uint64_t bound = map.ErrorBoundNs(stamp).value();
    EXPECT_LE(std::abs(Minus(map.ToReference(stamp), world.ReferenceAt(raw))),
              static_cast<double>(bound));
    EXPECT_LT(bound, 200'000u);
  }
}

TEST(RealtimeMapTest, HoldsThroughAStepAhead) {
  const World world{8'000'000};
  ExpectHolds(world, RealtimeMapOf(world.Model(), world.Snapshots(), world.Events()));
}

TEST(RealtimeMapTest, DetectsUnreportedStep) {
  const World world{3'000'000'000};
  ExpectHolds(world, RealtimeMapOf(world.Model(), world.Snapshots(), {}));
}

TEST(RealtimeMapTest, ABoundAtTheEndOfTheScaleGrowsNoSmaller) {
  const World world;
  ClockModel model = world.Model();
  for (ClockKnot& knot : model.segments.front().knots) knot.bound_ns = UINT64_MAX - 10;
  const ClockMap map = RealtimeMapOf(model, world.Snapshots(), {});
  EXPECT_FALSE(map.is_identity());
  EXPECT_EQ(map.ErrorBoundNs(world.RealtimeAt(kRaw + kNsPerSecond)), std::nullopt);
}

TEST(RealtimeMapTest, IsTheIdentityWithoutEvidence) {
  const World world;
  EXPECT_TRUE(RealtimeMapOf(world.Model(), {}, {}).is_identity());
  EXPECT_TRUE(RealtimeMapOf({}, world.Snapshots(), {}).is_identity());
}

TEST(ClockLineTest, ExtendsOverWholeScale) {
  const ClockLine rises{0, UINT64_MAX, 0, UINT64_MAX};
  const ClockLine falls{0, UINT64_MAX, UINT64_MAX, 0};
  for (const uint64_t x : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_EQ(rises.At(x), x);
    EXPECT_EQ(falls.At(x), UINT64_MAX - x);
  }
  const ClockLine steep{UINT64_MAX - 2, UINT64_MAX, 0, UINT64_MAX};
  EXPECT_EQ(steep.At(0), 0u);
  EXPECT_EQ(steep.At(UINT64_MAX - 1), UINT64_MAX / 2);
  const ClockLine slow{10, 13, 100, 101};
  EXPECT_EQ(slow.At(9), 99u) << "rounded down";
  EXPECT_EQ(slow.At(12), 100u);
}

TEST(MapOfTest, FollowsModelAndNeverRunsBackwards) {
  ClockModel model = World().Model();
  // A segment that begins 70 us earlier than the one before would have gone on.
  const uint64_t x = kRaw + 61 * kNsPerSecond;
  model.segments.push_back(
      {SegmentCause::kDetected,
       {{x, kMapReference + 61 * kNsPerSecond - 70'000, 200, 200},
        {x + kNsPerSecond, kMapReference + 62 * kNsPerSecond - 70'000, 300, 300}}});
  const ClockMap map = MapOf(model);
  uint64_t last = 0;
  for (uint64_t raw = kRaw - kNsPerSecond; raw < x + 2 * kNsPerSecond; raw += 12'345) {
    const uint64_t mapped = map.ToReference(raw);
    ASSERT_GE(mapped, last);
    last = mapped;
  }
  EXPECT_NEAR(Minus(map.ToReference(kRaw + 5'000), kMapReference + 5'000), 0, 2);
  EXPECT_LE(map.ErrorBoundNs(kRaw + 5'000).value(), 105u);
  EXPECT_GE(map.ErrorBoundNs(kRaw + 60 * kNsPerSecond + kNsPerSecond / 2).value(), 35'000u);
  EXPECT_LE(map.ErrorBoundNs(x + kNsPerSecond / 2).value(), 305u);
}

std::vector<ClockLine> OneByOne(const Lists& lists) {
  std::vector<ClockLine> lines;
  for (const std::vector<ClockLine>& list : lists) lines = UnionOf(lines, list);
  return lines;
}

// A clock that is 5 ms behind, and by as much as a map is off.
std::vector<ClockLine> Stretch(uint64_t begin, uint64_t lines, SeededRandom& random) {
  std::vector<ClockLine> list;
  uint64_t x = begin;
  uint64_t y = begin + 5'000'000 + random.Next64() % 1'000;
  for (uint64_t i = 0; i < lines; ++i) {
    const uint64_t length = 1'000 + random.Next64() % 100'000;
    const uint64_t rise = length + random.Next64() % 30;
    list.push_back({x, x + length, y, y + rise, random.Next64() % 500});
    x += length;
    y += rise;
  }
  return list;
}

TEST(LineUnionTest, IsTheUnionOneByOne) {
  SeededRandom random(7);
  for (int round = 0; round < 300; ++round) {
    Lists lists;
    uint64_t x = 10'000'000;
    for (uint64_t i = random.Next64() % 12; i > 0; --i) {
      lists.push_back(Stretch(x, random.Next64() % 6, random));
      if (!lists.back().empty()) x = lists.back().back().x_end_ns;
      // Set ahead, not at all, or back: somewhat, or before all there is.
      switch (random.Next64() % 4) {
        case 0:
          x += random.Next64() % 200'000;
          break;
        case 1:
          break;
        case 2:
          x -= random.Next64() % 100'000;
          break;
        default:
          x -= random.Next64() % std::min<uint64_t>(x, 2'000'000);
      }
    }
    const std::vector<ClockLine> expected = OneByOne(lists);
    EXPECT_EQ(UnionOfAll(std::move(lists)), expected) << round;
  }
}

TEST(LineUnionTest, ManyListsOneAfterTheOtherAreNoSquare) {
  constexpr uint64_t kMany = 100'000;
  Lists lists;
  for (uint64_t i = 0; i < kMany; ++i) {
    // Each begins a little before the one before it ends.
    lists.push_back({{1'000 * i, 1'000 * i + 1'010, 1'000 * i, 1'000 * i + 1'010, 5}});
  }
  EXPECT_EQ(UnionOfAll(std::move(lists)).size(), 2 * kMany - 1);
}

TEST(LineUnionTest, AClockThatIsSetBackAgainAndAgainIsNoSquareAndKeepsItsBounds) {
  constexpr uint64_t kMany = 60'000;
  Lists lists;
  for (uint64_t i = 0; i < kMany; ++i) {
    const uint64_t begin = 1'000'000 + 3 * i;
    lists.push_back({{begin, begin + 1'000'000, 7'000'000 + 11 * i, 8'000'000 + 11 * i, 5}});
  }
  const Lists copy = lists;
  const std::vector<ClockLine> lines = UnionOfAll(std::move(lists));
  EXPECT_LE(lines.size(), 3 * kMany);
  for (size_t i = 0; i < lines.size(); i += 97) {
    const ClockLine& line = lines[i];
    ASSERT_LT(line.x_begin_ns, line.x_end_ns);
    ASSERT_EQ(i == 0 ? line.x_begin_ns : lines[i - 1].x_end_ns, line.x_begin_ns);
    for (size_t k = 0; k < copy.size(); k += 1'009) {
      const ClockLine& of = copy[k].front();
      if (of.x_begin_ns > line.x_begin_ns || of.x_end_ns <= line.x_begin_ns) continue;
      const uint64_t y = of.At(line.x_begin_ns);
      const uint64_t off = std::max(y, line.y_begin_ns) - std::min(y, line.y_begin_ns);
      ASSERT_LE(off + of.bound_ns, line.bound_ns) << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace neurontrace
