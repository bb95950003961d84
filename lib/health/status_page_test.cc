// SPDX-License-Identifier: Apache-2.0
#include "lib/health/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Render(std::vector<StatusTable> tables, const std::string& conditions = "ok\n",
                   bool is_local = true,
                   const std::vector<prometheus::MetricFamily>& metrics = {}) {
  return RenderStatusPage({.program = "neurontrace-test",
                           .build = "neurontrace-test 1.2.3",
                           .tables = [&tables](bool) { return tables; }},
                          conditions, is_local, metrics);
}

TEST(StatusPage, EscapesForeignText) {
  const std::string html = Render({{"Workers", {"pid"}, {{"<script>alert(\"&\")</script>\x01"}}}});
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;?"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(StatusPage, ConditionsThatDoNotHoldStandOut) {
  const std::string html = Render({}, "ok store\nNOT aggregator: not connected yet\n");
  EXPECT_THAT(html, AllOf(HasSubstr("<td class=\"ok\">ok store"),
                          HasSubstr("<td class=\"bad\">NOT aggregator: not connected yet")));
}

TEST(StatusPage, TruncatesAndMarksLongTablesAndCells) {
  StatusTable table{"Agents", {"agent"}, {}};
  for (size_t i = 0; i < limits::kStatusRowsMax + 3; ++i) {
    table.rows.push_back({std::string(2 * limits::kStatusCellBytesMax, 'x')});
  }
  const std::string html = Render({table});
  EXPECT_THAT(html, HasSubstr("<p>and 3 more</p>"));
  EXPECT_LT(html.size(), (limits::kStatusRowsMax + 20) * (limits::kStatusCellBytesMax + 20));
}

TEST(StatusPage, EmptyTableHasPlaceholderRow) {
  EXPECT_THAT(Render({{"Captures", {"capture"}, {}}}), HasSubstr("<h2>Captures</h2>\n<p>none</p>"));
}

TEST(StatusPage, ShowsTheMetricsWithTheirLabels) {
  prometheus::Registry registry;
  prometheus::BuildCounter()
      .Name("nt_total")
      .Help("Things")
      .Register(registry)
      .Add({{"kind", "a"}})
      .Increment(3);
  auto& seconds = prometheus::BuildHistogram()
                      .Name("nt_seconds")
                      .Help("Time")
                      .Register(registry)
                      .Add({}, prometheus::Histogram::BucketBoundaries{1});
  seconds.Observe(0.5);
  seconds.Observe(1.5);
  const std::string html = Render({}, "ok\n", true, registry.Collect());
  EXPECT_THAT(html, HasSubstr("<td>nt_total<td>kind=a<td>3<td>Things"));
  EXPECT_THAT(html, HasSubstr("<td>nt_seconds<td><td>2 times, 1 on average<td>Time"));
}

// Of a fleet of 300, whose clocks are a series each, and with more metrics than a table has rows.
TEST(StatusPage, AMetricWithManySeriesHidesNoOther) {
  prometheus::Registry registry;
  auto& bounds = prometheus::BuildGauge().Name("nt_bound_seconds").Help("").Register(registry);
  for (int i = 100; i < 400; ++i) bounds.Add({{"instance_id", std::to_string(i)}}).Set(1);
  for (size_t i = 0; i < limits::kStatusRowsMax + 1; ++i) {
    prometheus::BuildGauge()
        .Name("nt_x" + std::to_string(i))
        .Help("")
        .Register(registry)
        .Add({})
        .Set(7);
  }
  const std::string html = Render({}, "ok\n", true, registry.Collect());
  EXPECT_THAT(html,
              AllOf(HasSubstr("<td>instance_id=107<td>1<td>"), Not(HasSubstr("instance_id=108")),
                    HasSubstr("<td>nt_bound_seconds<td>292 more<td>")));
  for (size_t i = 0; i < limits::kStatusRowsMax + 1; ++i) {
    EXPECT_THAT(html, HasSubstr("<td>nt_x" + std::to_string(i) + "<td><td>7<td>"));
  }
}

}  // namespace
}  // namespace neurontrace
