// SPDX-License-Identifier: Apache-2.0
// What it costs to map an event's time to the reference, and to look up its bound: a stream's
// events in order, about as many pieces to cross as a capture has.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_map.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBase = 1'750'000'000'000'000'000u;
constexpr uint64_t kPieceNs = 5'000'000'000;  // a knot every 5 s
constexpr size_t kEvents = 1u << 20;

ClockMap MakeMap(size_t pieces) {
  std::vector<ClockMap::Piece> made;
  uint64_t reference_ns = kBase + 123'456'789;
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < pieces; ++i) {
    const auto rate = static_cast<int64_t>(random() % 40'000'000);  // up to 40 ppm
    made.push_back({kBase + i * kPieceNs, reference_ns, rate, 30'000 + random() % 1'000});
    reference_ns += kPieceNs + ((kPieceNs * static_cast<uint64_t>(rate)) >> ClockMap::kRateBits);
  }
  auto map = ClockMap::FromPieces(std::move(made));
  if (!map.ok()) std::abort();
  return *std::move(map);
}

// Events of one stream over all pieces, nearly in order, as a runtime writes them.
std::vector<uint64_t> MakeStamps(size_t pieces) {
  std::vector<uint64_t> stamps(kEvents);
  std::mt19937_64 random(2);
  const uint64_t step_ns = pieces * kPieceNs / kEvents;
  for (size_t i = 0; i < kEvents; ++i) stamps[i] = kBase + i * step_ns + random() % (2 * step_ns);
  return stamps;
}

void BM_MapEvent(benchmark::State& state) {
  const auto pieces = static_cast<size_t>(state.range(0));
  const ClockMap map = pieces == 0 ? ClockMap() : MakeMap(pieces);
  const auto stamps = MakeStamps(std::max<size_t>(1, pieces));
  for (auto _ : state) {
    ClockMapCursor cursor(map);
    uint64_t sum = 0;
    for (const uint64_t stamp : stamps) sum += cursor.ToReference(stamp);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kEvents));
}
BENCHMARK(BM_MapEvent)->ArgName("pieces")->Arg(0)->Arg(1)->Arg(12)->Arg(720);

void BM_BoundOfEvent(benchmark::State& state) {
  const auto pieces = static_cast<size_t>(state.range(0));
  const ClockMap map = MakeMap(pieces);
  const auto stamps = MakeStamps(pieces);
  for (auto _ : state) {
    ClockMapCursor cursor(map);
    uint64_t sum = 0;
    for (const uint64_t stamp : stamps) sum += cursor.ErrorBoundNs(stamp).value_or(0);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kEvents));
}
BENCHMARK(BM_BoundOfEvent)->ArgName("pieces")->Arg(12)->Arg(720);

}  // namespace
}  // namespace neurontrace
