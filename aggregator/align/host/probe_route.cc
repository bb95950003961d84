// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host/probe_route.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace neurontrace {
namespace {

// Each path is divided into bins, and neighbouring bins with about the same least round trip are
// joined into stretches. A stretch is a route. A change counts only if three bins agree on it and,
// for a longer way, if it lasts: congestion only ever adds delay.

// This many exchanges around a change may have taken either route.
constexpr size_t kDoubtful = 8;
// How many bins in a row must show the new least round trip.
constexpr size_t kBinsToAgree = 3;

// Exchanges [begin, end) of a path, in the path's own order.
struct Bin {
  size_t begin = 0;
  size_t end = 0;
  double least_ns = 0;
};

// Bins of a path that are taken for one route.
struct RouteInterval {
  size_t begin = 0;
  size_t end = 0;
  double least_ns = 0;
};

// Finds the routes of one path.
class PathSearch {
 public:
  PathSearch(std::vector<HostExchange>& exchanges, std::vector<uint32_t> members,
             const ProbeRouteParameters& parameters)
      : exchanges_(exchanges), members_(std::move(members)), parameters_(parameters) {}

  void Run(ProbeRoutes& routes);

 private:
  const HostExchange& At(size_t i) const { return exchanges_[members_[i]]; }
  double SecondsBetween(size_t first, size_t last) const {
    return static_cast<double>(At(last).receive_ns - At(first).receive_ns) * 1e-9;
  }
  void MakeBins();
  void MeasureScatter();
  bool Agree(size_t bin) const;
  size_t EndOfLonger(size_t bin, double least_ns) const;
  std::vector<RouteInterval> FindIntervals() const;
  size_t FirstOf(const RouteInterval& before, const RouteInterval& after, size_t& doubt_begin,
                 size_t& doubt_end) const;
  ProbeRoute RouteOf(size_t begin, size_t end) const;

  std::vector<HostExchange>& exchanges_;
  const std::vector<uint32_t> members_;
  const ProbeRouteParameters& parameters_;
  std::vector<Bin> bins_;
  double agree_ns_ = 0;
  double differ_ns_ = 0;
};

// A bin needs both its time and its probes, so that its minimum is near the least delay even if
// probes are rare.
void PathSearch::MakeBins() {
  for (size_t i = 0; i < members_.size(); ++i) {
    const bool full = !bins_.empty() && i - bins_.back().begin >= parameters_.bin_probes &&
                      SecondsBetween(bins_.back().begin, i) >= parameters_.bin_s;
    if (bins_.empty() || full) bins_.push_back({i, i, At(i).round_trip_ns});
    bins_.back().end = i + 1;
    bins_.back().least_ns = std::min(bins_.back().least_ns, At(i).round_trip_ns);
  }
}

// Adapts the thresholds to how much the bins of this path scatter: the median difference between
// neighbours.
void PathSearch::MeasureScatter() {
  std::vector<double> steps;
  for (size_t i = 1; i < bins_.size(); ++i) {
    steps.push_back(std::abs(bins_[i].least_ns - bins_[i - 1].least_ns));
  }
  double typical = 0;
  if (!steps.empty()) {
    const auto middle = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    typical = *middle;
  }
  agree_ns_ = std::max(parameters_.agree_ns, 4 * typical);
  differ_ns_ = std::max(parameters_.differ_ns, 6 * typical);
}

// Returns whether this bin and the two after it have nearly the same least round trip.
bool PathSearch::Agree(size_t bin) const {
  if (bin + kBinsToAgree > bins_.size()) return false;
  double least = bins_[bin].least_ns;
  double most = least;
  for (size_t i = bin; i < bin + kBinsToAgree; ++i) {
    least = std::min(least, bins_[i].least_ns);
    most = std::max(most, bins_[i].least_ns);
  }
  return most - least <= agree_ns_;
}

// Returns the bin at which round trips return to what they were, or the end.
size_t PathSearch::EndOfLonger(size_t bin, double least_ns) const {
  while (bin < bins_.size() && bins_[bin].least_ns > least_ns + differ_ns_) ++bin;
  return bin;
}

// The first bin always starts a stretch; requires at least one bin.
std::vector<RouteInterval> PathSearch::FindIntervals() const {
  std::vector<RouteInterval> stretches = {{0, 1, bins_.front().least_ns}};
  for (size_t bin = 1; bin < bins_.size(); ++bin) {
    RouteInterval& now = stretches.back();
    const double change = bins_[bin].least_ns - now.least_ns;
    if (std::abs(change) > differ_ns_ && Agree(bin)) {
      const size_t back = EndOfLonger(bin, now.least_ns);
      const bool passes =
          change > 0 && back < bins_.size() &&
          SecondsBetween(bins_[bin].begin, bins_[back].begin) < parameters_.longer_s;
      if (!passes) {
        stretches.push_back({bin, bin + 1, bins_[bin].least_ns});
        continue;
      }
      bin = back - 1;
    } else if (std::abs(change) <= differ_ns_) {
      now.least_ns = std::min(now.least_ns, bins_[bin].least_ns);
    }
    now.end = bin + 1;
  }
  return stretches;
}

// Returns the first exchange that took the route `after`, and the range that may have taken either.
// After a change to a longer route none is shorter than the new one allows. Before a change to a
// shorter one, none is shorter than the old one did.
size_t PathSearch::FirstOf(const RouteInterval& before, const RouteInterval& after,
                           size_t& doubt_begin, size_t& doubt_end) const {
  const size_t from = bins_[after.begin - 1].begin;
  const size_t to = bins_[std::min(after.begin + 1, bins_.size() - 1)].end;
  if (after.least_ns > before.least_ns) {
    size_t first = from;
    for (size_t i = from; i < to; ++i) {
      if (At(i).round_trip_ns < after.least_ns - 1'000) first = i + 1;
    }
    doubt_begin = first;
    doubt_end = std::min(first + kDoubtful, to);
    return first;
  }
  size_t first = from;
  while (first < to && At(first).round_trip_ns >= before.least_ns - 1'000) ++first;
  doubt_begin = first - std::min(first, kDoubtful);
  doubt_end = first;
  return first;
}

// Measures the route of exchanges [begin, end). The shift stays unknown until FindSteps learns it.
ProbeRoute PathSearch::RouteOf(size_t begin, size_t end) const {
  constexpr size_t kShortest = 4;
  constexpr size_t kOutliersMax = 3;
  std::vector<double> shortest;
  for (size_t i = begin; i < end; ++i) shortest.push_back(At(i).round_trip_ns);
  const size_t sorted = std::min(kShortest + kOutliersMax, shortest.size());
  std::partial_sort(shortest.begin(), shortest.begin() + static_cast<ptrdiff_t>(sorted),
                    shortest.end());
  shortest.resize(sorted);
  // A round trip far shorter than all others does not measure the route: one of its stamps is
  // wrong.
  for (size_t outlier = 0; outlier < kOutliersMax && shortest.size() > kShortest; ++outlier) {
    if (shortest[1] - shortest[0] > differ_ns_) shortest.erase(shortest.begin());
  }
  const size_t kept = std::min(kShortest, shortest.size());
  ProbeRoute route{.path = At(begin).path, .round_trip_ns = shortest.front()};
  // The k-th shortest is about as far from the shortest as that one is from the shortest possible.
  route.margin_ns = std::max(parameters_.margin_ns, shortest[kept - 1] - shortest.front());
  if (kept < kShortest) route.margin_ns = std::max(route.margin_ns, route.round_trip_ns / 8);
  // A call passes queues and threads of both programs. Its least round trip says nothing about the
  // least delay of either direction, so none is assumed.
  if (route.path == ProbePath::kGrpc) route.margin_ns = route.round_trip_ns / 2;
  return route;
}

// Numbers the routes of this path after those that others have added. Exchanges in doubt keep
// kNoRoute.
void PathSearch::Run(ProbeRoutes& routes) {
  MakeBins();
  MeasureScatter();
  const std::vector<RouteInterval> stretches = FindIntervals();
  size_t begin = 0;
  size_t doubt_end = 0;
  for (size_t s = 0; s < stretches.size(); ++s) {
    size_t end = members_.size();
    size_t certain_end = end;
    size_t next_doubt_end = end;
    if (s + 1 < stretches.size()) {
      end = FirstOf(stretches[s], stretches[s + 1], certain_end, next_doubt_end);
    }
    const auto number = static_cast<uint32_t>(routes.routes.size());
    const size_t certain_begin = std::max(begin, doubt_end);
    if (certain_begin < certain_end) {
      routes.routes.push_back(RouteOf(certain_begin, certain_end));
      for (size_t i = certain_begin; i < certain_end; ++i) exchanges_[members_[i]].route = number;
      if (s > 0) {
        routes.changes.push_back({At(begin - 1).receive_ns, At(certain_begin).receive_ns, number,
                                  stretches[s].least_ns - stretches[s - 1].least_ns});
      }
    }
    begin = end;
    doubt_end = next_doubt_end;
  }
}

}  // namespace

ProbeRoutes FindRoutes(std::vector<HostExchange>& exchanges,
                       const ProbeRouteParameters& parameters) {
  std::map<ProbePath, std::vector<uint32_t>> paths;
  for (size_t i = 0; i < exchanges.size(); ++i) {
    paths[exchanges[i].path].push_back(static_cast<uint32_t>(i));
  }
  ProbeRoutes routes;
  for (auto& [path, members] : paths) {
    PathSearch(exchanges, std::move(members), parameters).Run(routes);
  }
  return routes;
}

}  // namespace neurontrace
