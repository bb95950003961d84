// SPDX-License-Identifier: Apache-2.0
#include "lib/health/daemon_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include <chrono>
#include <map>

#include "lib/base/build_facts.h"
#include "lib/base/clock.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

DaemonMetrics::Options Options() {
  return {.program = "a-daemon",
          .condition_metric = "neurontrace_test_ready_condition",
          .labels = {{"instance_id", "i-1"}}};
}

// "name{label=value,…}" to its value.
std::map<std::string, double> ValuesOf(const DaemonMetrics& metrics) {
  std::map<std::string, double> values;
  for (const auto& family : metrics.Collect()) {
    for (const auto& metric : family.metric) {
      std::string name = family.name;
      for (const auto& label : metric.label) name += "," + label.name + "=" + label.value;
      const bool is_counter = family.type == prometheus::MetricType::Counter;
      values[name] = is_counter ? metric.counter.value : metric.gauge.value;
    }
  }
  return values;
}

TEST(DaemonMetrics, HasTheRegistrysAndTheBuild) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter().Name("own_total").Register(*registry).Add({}).Increment(3);
  const HealthState health;
  const auto values = ValuesOf(DaemonMetrics(registry, health, Options()));
  EXPECT_EQ(values.at("own_total"), 3);
  const Build build = ThisBuild();
  EXPECT_EQ(values.at("neurontrace_build_info,build_type=" + std::string(build.type) + ",commit=" +
                      std::string(build.commit) + ",compiler=" + std::string(build.compiler) +
                      ",program=a-daemon,version=" + std::string(build.version)),
            1);
}

TEST(DaemonMetrics, ConditionsAreEvaluatedOnScrape) {
  HealthState health;
  health.Declare("socket", HealthState::Severity::kReadiness, "not yet");
  health.Declare("files", HealthState::Severity::kLiveness, "");
  const DaemonMetrics metrics(std::make_shared<prometheus::Registry>(), health, Options());
  constexpr char kSocket[] = "neurontrace_test_ready_condition,condition=socket,instance_id=i-1";
  constexpr char kFiles[] = "neurontrace_test_ready_condition,condition=files,instance_id=i-1";
  EXPECT_EQ(ValuesOf(metrics).at(kSocket), 0);
  EXPECT_EQ(ValuesOf(metrics).at(kFiles), 1);
  health.Set("socket", true);
  health.Set("files", false, "damaged");
  EXPECT_EQ(ValuesOf(metrics).at(kSocket), 1);
  EXPECT_EQ(ValuesOf(metrics).at(kFiles), 0);
}

TEST(DaemonMetrics, TheAgeOfASequenceGrowsWithoutIt) {
  FakeClock clock;
  LoopWatchdog turns(clock);
  const HealthState health;
  DaemonMetrics::Options options = Options();
  options.age_metric = "neurontrace_test_sequence_age_seconds";
  options.turns = &turns;
  const DaemonMetrics metrics(std::make_shared<prometheus::Registry>(), health, options);
  constexpr char kAge[] = "neurontrace_test_sequence_age_seconds,instance_id=i-1";
  EXPECT_FALSE(ValuesOf(metrics).contains(kAge)) << "it has not begun";
  turns.Turn();
  clock.AdvanceNs(31'500'000'000);
  EXPECT_DOUBLE_EQ(ValuesOf(metrics).at(kAge), 31.5);
}

TEST(DaemonMetrics, ExportsProcessMetrics) {
  const HealthState health;
  const DaemonMetrics metrics(std::make_shared<prometheus::Registry>(), health, Options());
  const auto before = ValuesOf(metrics);
  const UniqueFd one(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(one.valid() && other.valid());
  EXPECT_EQ(ValuesOf(metrics).at("process_open_fds"), before.at("process_open_fds") + 2);
  EXPECT_GE(ValuesOf(metrics).at("process_cpu_seconds_total"),
            before.at("process_cpu_seconds_total"));
  EXPECT_GT(before.at("process_resident_memory_bytes"), 100'000);
  EXPECT_GT(before.at("process_virtual_memory_bytes"), before.at("process_resident_memory_bytes"));
  EXPECT_GE(before.at("process_threads"), 1);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(before.at("process_start_time_seconds"), now, 600);
}

TEST(ProcessStat, ReadsTheFieldsBehindAnyName) {
  const auto stat = ParseProcessStat(
      "4711 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 7 0 123456 1000000 250 "
      "18446744073709551615 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ticks, 200u);
  EXPECT_EQ(stat->threads, 7u);
  EXPECT_EQ(stat->start_ticks, 123456u);
  EXPECT_EQ(stat->virtual_bytes, 1'000'000u);
  EXPECT_EQ(stat->resident_pages, 250u);
}

TEST(ProcessStat, RejectsInvalidText) {
  EXPECT_FALSE(ParseProcessStat(""));
  EXPECT_FALSE(ParseProcessStat("1 (x) S 1 2 3"));
  EXPECT_FALSE(ParseProcessStat("1 (x) S 1 2 3 4 5 6 7 8 9 10 -1 50 0 0 20 0 7 0 1 1 1"));
  EXPECT_FALSE(ParseProcessStat("no brackets at all"));
}

}  // namespace
}  // namespace neurontrace
