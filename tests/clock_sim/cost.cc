// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/cost.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/align/core/pair_clock.h"
#include "tests/clock_sim/host_scenario.h"
#include "tests/clock_sim/processor_time.h"

namespace neurontrace {
namespace {

// What a measured loop ends in, so that a compiler cannot leave it out.
volatile uint64_t g_kept;

void FollowLive(const ClockEvidence& evidence, Costs& costs) {
  const auto lower = [](const ClockExchange& exchange) {
    return ClockConstraint{.x_ns = exchange.receive_raw_ns,
                           .y_min_ns = exchange.reference_send_ns,
                           .likely_min_ns = exchange.reference_send_ns + 28'000};
  };
  const auto upper = [](const ClockExchange& exchange) {
    return ClockConstraint{.x_ns = exchange.send_raw_ns,
                           .y_max_ns = exchange.reference_receive_ns,
                           .likely_max_ns = exchange.reference_receive_ns - 28'000};
  };
  PairClock clock(upper(evidence.exchanges.front()), PairParameters{});
  uint64_t sent_ns = 0;
  const uint64_t begin_ns = ProcessorTimeNs();
  for (const ClockExchange& exchange : evidence.exchanges) {
    // Of packets that overtook each other only what came back counts here: times must ascend.
    if (exchange.send_raw_ns > sent_ns) clock.Add(upper(exchange));
    g_kept = static_cast<uint64_t>(clock.Add(lower(exchange)).possible);
    sent_ns = exchange.receive_raw_ns;
  }
  costs.live_ns += ProcessorTimeNs() - begin_ns;
}

std::vector<ClockMap::Piece> PiecesOf(const ClockModel& model) {
  std::vector<ClockMap::Piece> pieces;
  const std::vector<ClockKnot>& knots = model.segments.front().knots;
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    const double x = static_cast<double>(knots[i + 1].x_ns - knots[i].x_ns);
    const double gained =
        static_cast<double>(static_cast<int64_t>(knots[i + 1].y_ns - knots[i].y_ns)) - x;
    pieces.push_back({.raw_begin_ns = knots[i].x_ns,
                      .reference_begin_ns = knots[i].y_ns,
                      .rate = static_cast<int64_t>(gained / x * 0x1p40) - 1,
                      .error_bound_ns = knots[i].bound_ns});
  }
  return pieces;
}

void Convert(const ClockModel& model, uint64_t begin_raw_ns, uint64_t end_raw_ns, Costs& costs) {
  constexpr uint64_t kEvents = 1'000'000;
  const absl::StatusOr<ClockMap> map = ClockMap::FromPieces(PiecesOf(model));
  if (!map.ok()) return;
  ClockMapCursor cursor(*map);
  const uint64_t step_ns = (end_raw_ns - begin_raw_ns) / kEvents;
  uint64_t sum = 0;
  const uint64_t begin_ns = ProcessorTimeNs();
  for (uint64_t i = 0; i < kEvents; ++i) sum += cursor.ToReference(begin_raw_ns + i * step_ns);
  const double each_ns = static_cast<double>(ProcessorTimeNs() - begin_ns) / double{kEvents};
  costs.conversion_ns = std::min(costs.conversion_ns, each_ns);
  g_kept = sum;
}

}  // namespace

Costs MeasureCosts(uint64_t seed, uint32_t hosts) {
  constexpr int64_t kHour = 3600 * kSecond;
  Costs costs{.hosts = hosts, .live_bytes = sizeof(PairClock)};
  HostScenario scenario = *FindHostScenario("S1");
  const ReferenceClock reference = MakeReference(scenario, seed);
  for (uint32_t member = 0; member < hosts; ++member) {
    const Host host = PlayHost(PlanHost(scenario, seed, member), reference, kHour, seed, member);
    costs.exchanges += host.records.evidence.exchanges.size();
    const uint64_t begin_ns = ProcessorTimeNs();
    const ClockModel model = FitHostClock(host.records.evidence, HostFitParameters{});
    costs.fit_ns += ProcessorTimeNs() - begin_ns;
    FollowLive(host.records.evidence, costs);
    Convert(model, host.truth.raw.Read(0), host.truth.raw.Read(kHour), costs);
  }
  return costs;
}

}  // namespace neurontrace
