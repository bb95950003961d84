// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "aggregator/align/clock_reading.h"
#include "base/status.h"

namespace neurontrace {
namespace {

// No clock is known worse than this, so that sums over many never overflow.
constexpr uint64_t kBoundMaxNs = uint64_t{1} << 46;  // 19 hours
constexpr double kSlopeMax = 0.1;                    // that a ClockMap can follow

double Difference(uint64_t a, uint64_t b) {
  return static_cast<double>(static_cast<int64_t>(a - b));
}

// One clock's model over reference time, read at times that mostly ascend.
class ModelReader {
 public:
  explicit ModelReader(const std::vector<ClockKnot>& knots) : knots_(knots) {}

  uint64_t begin_ns() const { return knots_.front().y_ns; }
  uint64_t end_ns() const { return knots_.back().y_ns; }

  // y - x, less what it is at the first knot.
  double Theta(uint64_t y_ns) {
    Seek(y_ns);
    return ThetaAtKnot(at_) + Rate(at_) * Difference(y_ns, knots_[at_].y_ns);
  }
  double Bound(uint64_t y_ns, bool likely) {
    Seek(y_ns);
    const auto of = [likely](const ClockKnot& knot) {
      return static_cast<double>(std::min(
          kBoundMaxNs, likely ? std::min(knot.likely_bound_ns, knot.bound_ns) : knot.bound_ns));
    };
    if (y_ns <= knots_[at_].y_ns || at_ + 1 == knots_.size()) return of(knots_[at_]);
    return std::max(of(knots_[at_]), of(knots_[at_ + 1]));
  }
  // The furthest that a rate of the model within [begin, end] is from `mean`.
  double RateSpread(uint64_t begin_ns, uint64_t end_ns, double mean) {
    Seek(begin_ns);
    double spread = std::abs(Rate(at_) - mean);
    for (size_t i = at_ + 1; i < knots_.size() && knots_[i].y_ns < end_ns; ++i) {
      spread = std::max(spread, std::abs(Rate(i) - mean));
    }
    return spread;
  }

 private:
  // The last knot at or before y; the first if there is none.
  void Seek(uint64_t y_ns) {
    while (at_ > 0 && knots_[at_].y_ns > y_ns) --at_;
    while (at_ + 1 < knots_.size() && knots_[at_ + 1].y_ns <= y_ns) ++at_;
  }
  double ThetaAtKnot(size_t i) const {
    return Difference(knots_[i].y_ns - knots_.front().y_ns, knots_[i].x_ns - knots_.front().x_ns);
  }
  // d(y - x) / dy behind knot i; behind the last one as before it.
  double Rate(size_t i) const {
    if (knots_.size() < 2) return 0;
    i = std::min(i, knots_.size() - 2);
    return (ThetaAtKnot(i + 1) - ThetaAtKnot(i)) / Difference(knots_[i + 1].y_ns, knots_[i].y_ns);
  }

  const std::vector<ClockKnot>& knots_;
  size_t at_ = 0;
};

struct SlopeParameters {
  double wander_per_ns;  // change of rate per ns
  double rate_max;
};

// How much the error of a model can change per ns within [begin, end].
double SlopeOf(ModelReader& model, uint64_t begin_ns, uint64_t end_ns, bool likely,
               const SlopeParameters& parameters) {
  const uint64_t middle =
      std::clamp(begin_ns + (end_ns - begin_ns) / 2, model.begin_ns(), model.end_ns());
  const double bound = std::max(1.0, model.Bound(middle, likely));
  // The derivative of 2 bound / T + wander T / 4 is nothing here.
  const double half = std::sqrt(8 * bound / parameters.wander_per_ns) / 2;
  const auto reach = static_cast<uint64_t>(std::min(half, 1e15));
  const uint64_t from = middle - std::min(reach, middle - model.begin_ns());
  const uint64_t to = middle + std::min(reach, model.end_ns() - middle);
  double mean = 0;
  double uncertain = parameters.rate_max;
  if (to > from) {
    const double length = Difference(to, from);
    const double before = Difference(middle, from);
    const double behind = Difference(to, middle);
    mean = (model.Theta(to) - model.Theta(from)) / length;
    const double away = (before * before + behind * behind) / (2 * length);
    const double inside = Difference(end_ns, begin_ns);
    const uint64_t center = begin_ns + (end_ns - begin_ns) / 2;
    const double beyond = Difference(std::max(center, middle), std::min(center, middle));
    uncertain = (model.Bound(from, likely) + model.Bound(to, likely)) / length +
                parameters.wander_per_ns * (away + inside + beyond);
  }
  uncertain = std::min(uncertain, parameters.rate_max);
  return std::min(uncertain + model.RateSpread(begin_ns, end_ns, mean), kSlopeMax);
}

}  // namespace

std::vector<CausalClock> CausalClocksOf(std::string_view name, const ClockModel& model) {
  std::vector<CausalClock> clocks;
  for (size_t i = 0; i < model.segments.size(); ++i) {
    clocks.push_back(
        {.name = i == 0 ? std::string(name) : fmt::format("{} after break {}", name, i),
         .knots = model.segments[i].knots});
  }
  return clocks;
}

std::optional<CausalStamp> CausalStampOf(const ClockModel& model, uint32_t first_clock,
                                         uint64_t x_ns) {
  const std::vector<ClockSegment>& segments = model.segments;
  if (segments.empty()) return std::nullopt;
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), x_ns,
                       [](uint64_t x, const ClockSegment& s) { return x < s.knots.front().x_ns; });
  if (after == segments.begin()) {
    return CausalStamp{EvaluateSegment(segments.front(), x_ns).y_ns, first_clock};
  }
  const auto segment = std::prev(after);
  if (after != segments.end() && x_ns > segment->knots.back().x_ns) return std::nullopt;
  return CausalStamp{EvaluateSegment(*segment, x_ns).y_ns,
                     first_clock + static_cast<uint32_t>(segment - segments.begin())};
}

size_t CausalGrid::EpochOf(uint64_t reference_ns) const {
  if (reference_ns < begin_ns || epochs == 0) return 0;
  return std::min<size_t>((reference_ns - begin_ns) / epoch_ns, epochs - 1);
}

size_t CausalGrid::NearestKnot(uint64_t reference_ns) const {
  if (reference_ns < begin_ns) return 0;
  return std::min<size_t>((reference_ns - begin_ns + epoch_ns / 2) / epoch_ns, epochs);
}

CausalLimits::CausalLimits(const CausalGrid& grid, size_t clocks)
    : clocks_(clocks), bound_(grid.knots() * clocks), slope_(grid.epochs * clocks) {}

CausalLimitsPair LimitsOf(const std::vector<CausalClock>& clocks, const CausalGrid& grid,
                          uint64_t wander_ppb_per_s, uint64_t rate_max_ppb) {
  CausalLimitsPair limits{CausalLimits(grid, clocks.size()), CausalLimits(grid, clocks.size())};
  const SlopeParameters parameters{
      .wander_per_ns = std::max(1e-3, static_cast<double>(wander_ppb_per_s)) * 1e-18,
      .rate_max = static_cast<double>(rate_max_ppb) * 1e-9};
  const auto fill = [&](CausalLimits& into, size_t clock, bool likely) {
    ModelReader model(clocks[clock].knots);
    const auto epoch_ns = static_cast<double>(grid.epoch_ns);
    for (size_t e = 0; e < grid.epochs; ++e) {
      const double slope = SlopeOf(model, grid.KnotNs(e), grid.KnotNs(e + 1), likely, parameters);
      into.Slope(e, clock) = static_cast<int64_t>(std::ceil(slope * epoch_ns));
    }
    for (size_t k = 0; k < grid.knots(); ++k) {
      const uint64_t y = grid.KnotNs(k);
      const uint64_t inside = std::clamp(y, model.begin_ns(), model.end_ns());
      double bound = model.Bound(inside, likely);
      bound += Difference(std::max(y, inside), std::min(y, inside)) * parameters.rate_max;
      into.Bound(k, clock) = static_cast<int64_t>(std::ceil(bound));
    }
  };
  for (size_t clock = 0; clock < clocks.size(); ++clock) {
    fill(limits.hard, clock, false);
    fill(limits.likely, clock, true);
    for (size_t k = 0; k < grid.knots(); ++k) {
      int64_t& bound = limits.likely.Bound(k, clock);
      bound = std::min(bound, limits.hard.Bound(k, clock));
      if (k == grid.epochs) continue;
      int64_t& slope = limits.likely.Slope(k, clock);
      slope = std::min(slope, limits.hard.Slope(k, clock));
    }
  }
  return limits;
}

uint64_t BoundAt(const std::vector<ClockKnot>& knots, uint64_t reference_ns) {
  const auto after =
      std::upper_bound(knots.begin(), knots.end(), reference_ns,
                       [](uint64_t time, const ClockKnot& knot) { return time < knot.y_ns; });
  if (after == knots.begin()) return knots.front().bound_ns;
  const ClockKnot& before = *std::prev(after);
  if (after == knots.end() || before.y_ns == reference_ns) return before.bound_ns;
  return std::max(before.bound_ns, after->bound_ns);
}

}  // namespace neurontrace
