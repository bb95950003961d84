// SPDX-License-Identifier: Apache-2.0
#include "aggregator/capture_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace neurontrace {
namespace {

std::map<std::string, double> CountsOf(const prometheus::Registry& registry,
                                       const std::string& name) {
  std::map<std::string, double> counts;
  for (const auto& family : registry.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      counts[metric.label.at(0).value] = metric.counter.value;
    }
  }
  return counts;
}

using Counts = std::map<std::string, double>;

TEST(CaptureMetrics, EndsByOutcomeEachThereFromTheStart) {
  constexpr char kName[] = "neurontrace_aggregator_captures_ended_total";
  prometheus::Registry registry;
  CaptureMetrics metrics(registry);
  EXPECT_EQ(CountsOf(registry, kName),
            (Counts{{"complete", 0}, {"incomplete", 0}, {"not_begun", 0}}));
  metrics.CountEnded(CaptureState::kIncomplete);
  metrics.CountEnded(CaptureState::kIncomplete);
  metrics.CountEnded(CaptureState::kNotBegun);
  EXPECT_EQ(CountsOf(registry, kName),
            (Counts{{"complete", 0}, {"incomplete", 2}, {"not_begun", 1}}));
}

TEST(CaptureMetrics, RefusalsByTheKindOfTheirError) {
  prometheus::Registry registry;
  CaptureMetrics metrics(registry);
  metrics.CountAnswer(absl::OkStatus());
  metrics.CountAnswer(absl::InvalidArgumentError(""));
  metrics.CountAnswer(absl::ResourceExhaustedError(""));
  metrics.CountAnswer(absl::FailedPreconditionError(""));
  metrics.CountAnswer(absl::PermissionDeniedError(""));
  metrics.CountAnswer(absl::UnauthenticatedError(""));
  metrics.CountAnswer(absl::DataLossError(""));
  EXPECT_EQ(
      CountsOf(registry, "neurontrace_aggregator_captures_refused_total"),
      (Counts{
          {"invalid", 1}, {"limit", 1}, {"precondition", 1}, {"not_permitted", 2}, {"failed", 1}}));
}

}  // namespace
}  // namespace neurontrace
