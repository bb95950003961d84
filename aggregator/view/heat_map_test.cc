// SPDX-License-Identifier: Apache-2.0
// Goal: one late rank is seen at every resolution, nobody is compared with ranks of another group,
// and what is not known or not certain is shown as that. Method: hand-made barriers of ranks whose
// clocks have bounds, read through the exporters of the heat map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/derive/derive_fixture.h"
#include "aggregator/view/lateness_map.h"
#include "aggregator/view/step_busy_map.h"
#include "aggregator/view/step_map.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsNan;

// An answer, taken apart as the page does it.
struct HeatReading {
  std::string header;
  uint32_t columns = 0;
  std::vector<std::vector<float>> values;  // by line
  std::vector<std::vector<float>> bounds;
  std::vector<std::vector<uint32_t>> chosen;  // empty where each line is one row

  // `columns` as the test expects them.
  HeatReading(const std::string& bytes, size_t lines, uint32_t columns_in, bool has_bounds = true)
      : columns(columns_in) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + 4, sizeof(length));
    header = bytes.substr(8, length);
    size_t at = (8 + length + 7) / 8 * 8;
    const size_t blocks =
        (bytes.size() - at) / sizeof(float) / std::max<size_t>(1, lines * columns);
    Read(bytes, at, lines, values);
    if (has_bounds) Read(bytes, at, lines, bounds);
    if (blocks == 3) Read(bytes, at, lines, chosen);
    EXPECT_EQ(at, bytes.size()) << header;
  }

 private:
  template <typename Element>
  void Read(const std::string& bytes, size_t& at, size_t lines,
            std::vector<std::vector<Element>>& out) const {
    for (size_t line = 0; line < lines; ++line) {
      std::vector<Element> row(columns);
      const size_t size = columns * sizeof(Element);
      ASSERT_LE(at + size, bytes.size()) << header;
      if (size > 0) std::memcpy(row.data(), bytes.data() + at, size);
      at += size;
      out.push_back(std::move(row));
    }
  }
};

class HeatMapTest : public DeriveTest {
 protected:
  static constexpr uint64_t kUs = 1'000;
  static constexpr uint64_t kStepNs = 10 * kMs;

  // Ranks 0 to count - 1 of a job, each on an instance of its own with a clock of this bound.
  void AddRanks(uint32_t count, const std::string& job, std::optional<uint64_t> bound_ns) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      const StreamIdentity identity = Core(job + std::to_string(rank), 1, 0);
      const uint32_t stream = AddStream(identity, Rank(rank, count));
      source_.stream(stream).job = job;
      if (bound_ns) {
        clocks_.maps.Set(identity.worker, ClockDomain::kHostRealtime, BoundedClock(*bound_ns));
        clocks_.instances.push_back({.instance_id = identity.worker.instance_id,
                                     .boot_id = identity.worker.boot_id,
                                     .bound_ns = *bound_ns});
      }
    }
  }
  void Barrier(uint32_t stream, uint64_t exec_id, uint64_t arrives_ns, uint64_t leaves_ns) {
    script(stream).Span("enc_barrier", arrives_ns, leaves_ns, next_tracking_id_++, 7,
                        {{"exec_id", exec_id}});
  }
  // `steps` barriers of these streams, which all leave together. late_ns[stream] is added to each
  // arrival of a stream.
  void Barriers(uint32_t first, uint32_t count, uint64_t steps,
                const std::map<uint32_t, uint64_t>& late_ns) {
    for (uint64_t step = 0; step < steps; ++step) {
      const uint64_t at_ns = kBase + step * kStepNs;
      for (uint32_t stream = first; stream < first + count; ++stream) {
        const auto late = late_ns.find(stream);
        Barrier(stream, 100 + step, at_ns + kMs + (late == late_ns.end() ? 0 : late->second),
                at_ns + 5 * kMs);
      }
    }
  }
  static HeatWindow Window(uint64_t steps, uint32_t columns) {
    return {.from_ns = kBase, .to_ns = kBase + steps * kStepNs, .columns = columns};
  }
  void Run(Exporter& map, const HeatWindow& window) {
    for (uint32_t i = 0; i < source_.description().streams.size(); ++i) {
      if (closed_.insert(i).second) CloseChunk(i);
    }
    std::ranges::sort(clocks_.instances, {}, &InstanceClock::instance_id);
    ExportRequest request;
    request.clocks = &clocks_;
    request.no_flows = true;
    request.filter.window_start_ns = window.from_ns;
    request.filter.window_end_ns = window.to_ns;
    const auto summary = RunExporter(source_, map, request, false, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
  }
  HeatReading Late(LatenessMap::By by, const HeatWindow& window, size_t lines, uint32_t columns,
                   const HeatShape& shape = {}) {
    LatenessMap map(by, window);
    Run(map, window);
    return HeatReading(map.Take(shape), lines, columns);
  }
  HeatReading Steps(StepMap::By by, const HeatWindow& window, size_t lines, uint32_t columns) {
    StepMap map(by, window);
    Run(map, window);
    return HeatReading(map.Take({}), lines, columns);
  }

  // A map without bounds, whose bytes hold values alone.
  HeatReading StepShares(BusyMap::Metric metric, const HeatWindow& window, size_t lines,
                         uint32_t columns) {
    StepBusyMap map(metric, window);
    Run(map, window);
    return HeatReading(map.Take({}), lines, columns, /*has_bounds=*/false);
  }

  CaptureClocks clocks_;

 private:
  std::set<uint32_t> closed_;  // streams whose events are in a chunk
};

TEST_F(HeatMapTest, OneLateRankIsTheWorstAtEveryNumberOfColumnsAndLines) {
  constexpr uint32_t kRanks = 50;
  AddRanks(kRanks, "train", 10 * kUs);
  Barriers(0, kRanks, 64, {{13, 700 * kUs}, {14, 20 * kUs}});
  for (const uint32_t columns : {1u, 2u, 7u, 64u, 1000u}) {
    for (const uint32_t lines : {1u, 3u, 50u}) {
      SCOPED_TRACE(testing::Message() << columns << " columns, " << lines << " lines");
      const HeatReading map =
          Late(LatenessMap::By::kTime, Window(64, columns), lines, columns, {.lines_max = lines});
      float worst = 0;
      size_t worst_line = 0;
      size_t worst_row = 0;
      for (size_t line = 0; line < lines; ++line) {
        for (uint32_t column = 0; column < columns; ++column) {
          if (!(map.values[line][column] > worst)) continue;
          worst = map.values[line][column];
          worst_line = line;
          // The first row of a line, and the place of the worst one in it.
          worst_row = kRanks * line / lines;
          if (lines < kRanks) worst_row += map.chosen[line][column];
        }
      }
      EXPECT_EQ(worst_row, 13u);
      EXPECT_FLOAT_EQ(worst, 700'000.0f);
      EXPECT_EQ(worst_line, 13 * lines / kRanks);
    }
  }
}

TEST_F(HeatMapTest, WorstRanksComeFirstWhenSortedByWorst) {
  AddRanks(6, "train", 10 * kUs);
  Barriers(0, 6, 4, {{2, 100 * kUs}, {5, 300 * kUs}});
  const HeatReading map =
      Late(LatenessMap::By::kTime, Window(4, 4), 6, 4, {.is_worst_first = true});
  EXPECT_THAT(map.header, HasSubstr(R"("rows":[{"stream":5,"gid":5,"bound_known":true,)"
                                    R"("bound_ns":"10000"},{"stream":2,)"));
  EXPECT_THAT(map.values[0], Each(300'000.0f));
  EXPECT_THAT(map.values[1], Each(100'000.0f));
}

TEST_F(HeatMapTest, DifferencesCarryTheBoundsOfBothClocks) {
  AddRanks(3, "train", 40 * kUs);
  Barriers(0, 3, 2, {{1, 60 * kUs}, {2, 90 * kUs}});
  const HeatReading map = Late(LatenessMap::By::kTime, Window(2, 2), 3, 2);
  // The median is rank 1, so that its own bound does not matter to itself.
  EXPECT_THAT(map.values[0], Each(-60'000.0f));
  EXPECT_THAT(map.values[1], Each(0.0f));
  EXPECT_THAT(map.values[2], Each(30'000.0f));
  EXPECT_THAT(map.bounds[0], Each(80'000.0f));
  EXPECT_THAT(map.bounds[1], Each(0.0f));
  EXPECT_THAT(map.bounds[2], Each(80'000.0f)) << "more than the difference: the page greys it";
}

TEST_F(HeatMapTest, ABoundThatIsNotKnownIsNotANumber) {
  AddRanks(2, "train", std::nullopt);
  Barriers(0, 2, 1, {{1, 500 * kUs}});
  const HeatReading map = Late(LatenessMap::By::kTime, Window(1, 1), 2, 1);
  EXPECT_THAT(map.values[1], ElementsAre(500'000.0f));
  EXPECT_THAT(map.bounds[1], ElementsAre(IsNan()));
  EXPECT_THAT(map.header, HasSubstr(R"("bound_known":false,"bound_ns":"0")"));
}

TEST_F(HeatMapTest, ADoubtfulDifferenceDoesNotHideACertainOne) {
  HeatMatrix matrix(1, 1, /*has_bounds=*/true);
  matrix.Put(0, 0, -900, 10);
  EXPECT_FLOAT_EQ(matrix.value(0, 0), -900);
  matrix.Put(0, 0, 5'000, 6'000);
  EXPECT_FLOAT_EQ(matrix.value(0, 0), 5'000) << "perhaps late, rather than certainly early";
  matrix.Put(0, 0, 700, 10);
  EXPECT_FLOAT_EQ(matrix.value(0, 0), 700) << "certainly late";
  matrix.Put(0, 0, 8'000, std::nanf(""));
  EXPECT_FLOAT_EQ(matrix.value(0, 0), 700);
  EXPECT_FLOAT_EQ(matrix.bound(0, 0), 10);
}

TEST_F(HeatMapTest, JobsAreComparedEachWithThemselves) {
  AddRanks(3, "train", 10 * kUs);
  AddRanks(3, "serve", 10 * kUs);
  // Both number their executions alike, and `serve` is 2 ms later all the time.
  Barriers(0, 3, 3, {{1, 100 * kUs}});
  Barriers(3, 3, 3, {{3, 2 * kMs}, {4, 2 * kMs}, {5, 2 * kMs + 400 * kUs}});
  const HeatReading map = Late(LatenessMap::By::kTime, Window(3, 1), 6, 1);
  std::vector<float> values;
  for (const auto& line : map.values) values.push_back(line[0]);
  std::ranges::sort(values);
  EXPECT_THAT(values, ElementsAre(0, 0, 0, 0, 100'000.0f, 400'000.0f));
}

TEST_F(HeatMapTest, ARankInSeveralGroupsHasTheWorstOfThem) {
  AddRanks(4, "train", 1 * kUs);
  // Two groups by columns and two by rows of a 2 x 2 mesh; rank 3 is late in the second kind only.
  const auto collective = [&](uint32_t stream, uint64_t group, uint64_t op, uint64_t at_ns) {
    Collects(stream, {{"gid", group}, {"op_id", op}, {"exec_id", uint64_t{1}}}, at_ns,
             kBase + 5 * kMs);
  };
  for (uint32_t rank = 0; rank < 4; ++rank) {
    collective(rank, 100 + rank % 2, 1, kBase + kMs);
    collective(rank, 200 + rank / 2, 2, kBase + 2 * kMs + (rank == 3 ? 250 * kUs : 0));
  }
  const HeatReading map = Late(LatenessMap::By::kTime, Window(1, 1), 4, 1);
  EXPECT_THAT(map.values[3], ElementsAre(250'000.0f));
  for (const uint32_t rank : {0u, 1u, 2u}) EXPECT_THAT(map.values[rank], ElementsAre(0.0f));
}

TEST_F(HeatMapTest, LostBarriersAreUnknown) {
  AddRanks(3, "train", 10 * kUs);
  for (uint64_t step = 0; step < 5; ++step) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == 1 && step == 2) continue;  // lost
      Barrier(rank, step, kBase + step * kStepNs + kMs, kBase + step * kStepNs + 2 * kMs);
    }
  }
  const HeatReading late = Late(LatenessMap::By::kStep, Window(5, 5), 3, 5);
  EXPECT_THAT(late.values[1], ElementsAre(0, 0, IsNan(), 0, 0));
  const HeatReading steps = Steps(StepMap::By::kStep, Window(5, 5), 3, 5);
  // It has no beginning of the step after, either; what it did in both together is not compared.
  EXPECT_THAT(steps.values[1], ElementsAre(IsNan(), 0, IsNan(), IsNan(), 0));
  EXPECT_THAT(steps.values[0], ElementsAre(IsNan(), 0, 0, 0, 0));
}

TEST_F(HeatMapTest, StepsExcludeTheWaitingInBarriers) {
  AddRanks(4, "train", 10 * kUs);
  Barriers(0, 4, 4, {{2, 800 * kUs}});
  const HeatReading map = Steps(StepMap::By::kStep, Window(4, 16), 4, 4);
  EXPECT_THAT(map.header, HasSubstr(R"("steps":["0","1","2","3"],"steps_per_column":1)"));
  EXPECT_THAT(map.header, HasSubstr(R"("step_source":"barrier")"));
  EXPECT_THAT(map.values[2], ElementsAre(IsNan(), 800'000.0f, 800'000.0f, 800'000.0f));
  for (const uint32_t rank : {0u, 1u, 3u}) {
    EXPECT_THAT(map.values[rank], ElementsAre(IsNan(), 0, 0, 0)) << "those that wait for rank 2";
  }
  EXPECT_THAT(map.bounds[2], ElementsAre(IsNan(), 0, 0, 0)) << "the clock's offset cancels out";
}

// Each step ends when the barrier is left: at 5 ms of 10. Ranks work from then until they arrive.
TEST_F(HeatMapTest, SharesOfStepsEndWithTheirBarriers) {
  AddRanks(3, "train", 10 * kUs);
  Barriers(0, 3, 4, {{2, 2 * kMs}});
  script(0).Span("nrt_execute", kBase + 8 * kMs, kBase + 10 * kMs, 900, 7);
  // Reaches over the end of a step: two of its five milliseconds are in the next one.
  script(1).Span("nrt_execute", kBase + 12 * kMs, kBase + 17 * kMs, 901, 7);
  const HeatReading wait = StepShares(BusyMap::Metric::kWait, Window(4, 16), 3, 4);
  EXPECT_THAT(wait.header, HasSubstr(R"("steps":["0","1","2","3"],"steps_per_column":1)"));
  EXPECT_THAT(wait.header, HasSubstr(R"("step_source":"barrier")"));
  EXPECT_THAT(wait.header, HasSubstr(R"("has_bounds":false)"));
  // The first step of a rank begins with its first event, which is the barrier.
  EXPECT_THAT(wait.values[0], ElementsAre(1.0f, 0.4f, 0.4f, 0.4f));
  EXPECT_THAT(wait.values[2], ElementsAre(1.0f, 0.2f, 0.2f, 0.2f))
      << "nobody waits long for others";
  const HeatReading busy = StepShares(BusyMap::Metric::kBusy, Window(4, 16), 3, 4);
  EXPECT_THAT(busy.values[0], ElementsAre(1.0f, FloatEq(0.6f), 0.4f, 0.4f));
  EXPECT_THAT(busy.values[1], ElementsAre(1.0f, 0.4f, FloatEq(0.6f), 0.4f));
  const HeatReading events = StepShares(BusyMap::Metric::kEvents, Window(4, 16), 3, 4);
  EXPECT_THAT(events.values[0], ElementsAre(1, 2, 1, 1));
  EXPECT_THAT(events.values[1], ElementsAre(1, 2, 1, 1));
}

TEST_F(HeatMapTest, AStepThatReachesBeyondTheWindowIsUnknown) {
  AddRanks(2, "train", 10 * kUs);
  Barriers(0, 2, 3, {});
  HeatWindow window = Window(3, 16);
  window.to_ns = kBase + 22 * kMs;  // within the third barrier
  const HeatReading map = StepShares(BusyMap::Metric::kWait, window, 2, 2);
  EXPECT_THAT(map.values[0], ElementsAre(1.0f, 0.4f));
}

TEST_F(HeatMapTest, SharesWithoutStepsGiveTheReason) {
  AddRanks(1, "train", 10 * kUs);
  Barriers(0, 1, 3, {});
  const HeatReading map = StepShares(BusyMap::Metric::kBusy, Window(3, 16), 1, 0);
  EXPECT_THAT(map.header, AllOf(HasSubstr("there are no steps"), HasSubstr(R"("columns":0,)")));
}

TEST_F(HeatMapTest, StepsHaveTheColumnsOfTimeThatTheyTouch) {
  AddRanks(3, "train", 10 * kUs);
  Barriers(0, 3, 2, {{2, 3 * kMs}});
  // Ten columns of 2 ms. Left at 5 ms, arrived at 11 ms, rank 2 at 14 ms.
  const HeatReading map = Steps(StepMap::By::kTime, Window(2, 10), 3, 10);
  EXPECT_THAT(map.values[0],
              ElementsAre(IsNan(), IsNan(), 0, 0, 0, 0, IsNan(), IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(map.values[2], ElementsAre(IsNan(), IsNan(), 3e6f, 3e6f, 3e6f, 3e6f, 3e6f, IsNan(),
                                         IsNan(), IsNan()));
}

TEST_F(HeatMapTest, MoreStepsThanColumnsShareThemByTheWorst) {
  AddRanks(3, "train", 10 * kUs);
  for (uint64_t step = 0; step < 41; ++step) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const uint64_t late_ns = rank == 1 && step == 29 ? 900 * kUs : 0;
      Barrier(rank, step, kBase + step * kStepNs + kMs + late_ns, kBase + step * kStepNs + 2 * kMs);
    }
  }
  const HeatReading map = Steps(StepMap::By::kStep, Window(41, 10), 3, 6);
  EXPECT_THAT(map.header, HasSubstr(R"("columns":6,)"));
  EXPECT_THAT(map.header,
              HasSubstr(R"("steps":["0","8","16","24","32","40"],"steps_per_column":8)"));
  EXPECT_THAT(map.values[1], ElementsAre(0, 0, 0, 900'000.0f, 0, 0));
}

TEST_F(HeatMapTest, FrameworkStepsAreThoseOfTheWorkersCores) {
  for (uint32_t worker = 0; worker < 3; ++worker) {
    const std::string instance = "i-" + std::to_string(worker);
    const uint32_t framework = AddStream(Framework(instance, 1));
    for (uint32_t core = 0; core < 2; ++core) {
      const uint32_t stream = AddStream(Core(instance, 1, core), Rank(worker * 2 + core, 6));
      script(stream).Instant("tick", kBase);
    }
    for (uint64_t step = 0; step < 2; ++step) {
      const uint64_t length_ns = 8 * kMs + (worker == 1 && step == 1 ? 700 * kUs : 0);
      script(framework).Complete(
          "user_annotation", kBase + step * kStepNs, 0, 7,
          {{"name", "ProfilerStep#" + std::to_string(step + 7), KeyScope::kTop},
           {"dur_ns", length_ns, KeyScope::kTop}});
    }
  }
  const HeatReading map = Steps(StepMap::By::kStep, Window(2, 10), 6, 2);
  EXPECT_THAT(map.header, HasSubstr(R"("steps":["7","8"])"));
  EXPECT_THAT(map.header, HasSubstr(R"("step_source":"framework")"));
  for (const uint32_t rank : {2u, 3u}) EXPECT_THAT(map.values[rank], ElementsAre(0, 700'000.0f));
  for (const uint32_t rank : {0u, 1u, 4u, 5u}) EXPECT_THAT(map.values[rank], ElementsAre(0, 0));
}

TEST_F(HeatMapTest, FrameworkStepsBeyondTheLimitAreCounted) {
  for (uint32_t worker = 0; worker < 2; ++worker) {
    const std::string instance = "i-" + std::to_string(worker);
    const uint32_t framework = AddStream(Framework(instance, 1));
    script(AddStream(Core(instance, 1, 0), Rank(worker, 2))).Instant("tick", kBase);
    for (uint64_t step = 0; step < 4; ++step) {
      script(framework).Complete("user_annotation", kBase + step * kMs, 0, 7,
                                 {{"name", "ProfilerStep#" + std::to_string(step), KeyScope::kTop},
                                  {"dur_ns", uint64_t{500'000}, KeyScope::kTop}});
    }
  }
  const HeatWindow window = Window(1, 10);
  StepMap map(StepMap::By::kTime, window, /*sample=*/{}, /*framework_steps_max=*/5);
  Run(map, window);
  EXPECT_THAT(map.Take({}), HasSubstr("3 steps of frameworks were left out: one answer has 5"));
}

TEST_F(HeatMapTest, ACaptureWithoutStepsGivesTheReason) {
  AddRanks(2, "train", 10 * kUs);
  script(0).Span("nc_exec_running", kBase, kBase + kMs, 1);
  script(1).Span("nc_exec_running", kBase, kBase + kMs, 1);
  const HeatReading steps = Steps(StepMap::By::kStep, Window(1, 10), 2, 0);
  EXPECT_THAT(steps.header,
              AllOf(HasSubstr(R"("columns":0)"), HasSubstr("there are no steps to compare"),
                    HasSubstr("0 barriers were found")));
  const HeatReading late = Late(LatenessMap::By::kStep, Window(1, 10), 2, 0);
  EXPECT_THAT(late.header, HasSubstr("there are no steps: no barrier"));
  const HeatReading by_time = Late(LatenessMap::By::kTime, Window(1, 10), 2, 10);
  EXPECT_THAT(by_time.header, HasSubstr("no collective or barrier of two ranks or more"));
  EXPECT_THAT(by_time.values[0], Each(IsNan()));
}

TEST_F(HeatMapTest, ColumnsAreFewerWhereRanksAreMany) {
  EXPECT_EQ(HeatMatrix::ColumnsWithinLimit(24, 400), 400u);
  EXPECT_EQ(HeatMatrix::ColumnsWithinLimit(10'000, 1'000), 1'000u);
  EXPECT_EQ(HeatMatrix::ColumnsWithinLimit(100'000, 1'000), limits::kViewHeatCellsMax / 100'000);
  EXPECT_EQ(HeatMatrix::ColumnsWithinLimit(limits::kViewHeatCellsMax * 2, 1'000), 1u);
}

// Barriers of stretches that were not read are not there, and no step is measured across them.
TEST_F(HeatMapTest, ASampleComparesWithinItsStretchesOnly) {
  AddRanks(3, "a", 10);
  // Of 12 steps, the sample has 0 to 2 and 6 to 8; the others are as if their chunks were not read.
  for (uint64_t step = 0; step < 12; ++step) {
    if (step / 3 % 2 == 1) continue;
    const uint64_t at_ns = kBase + step * kStepNs;
    for (uint32_t stream = 0; stream < 3; ++stream) {
      Barrier(stream, 100 + step, at_ns + kMs + (stream == 2 ? 100 * kUs : 0), at_ns + 5 * kMs);
    }
  }
  const HeatWindow window = Window(12, 12);
  const TimeSample sample{.from_ns = kBase, .stretch_ns = 3 * kStepNs, .every = 2};
  StepMap map(StepMap::By::kTime, window, sample);
  Run(map, window);
  const HeatReading steps(map.Take({}), 3, 12);
  EXPECT_THAT(steps.header, HasSubstr("a sample: one of every 2 stretches"));
  EXPECT_THAT(steps.header, HasSubstr("\"complete\":false"));
  for (const uint32_t unread : {3u, 4u, 5u, 9u, 10u, 11u}) {
    EXPECT_THAT(steps.values[2][unread], IsNan()) << unread;
  }
  EXPECT_FLOAT_EQ(steps.values[2][1], 100 * kUs);
}

}  // namespace
}  // namespace neurontrace
