// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/overhead_governor.h"

#include <algorithm>
#include <cmath>

namespace neurontrace {
namespace {

// Samples closer together than this are merged, which bounds the window's memory.
constexpr uint64_t kSampleNs = OverheadGovernor::kWindowNs / 20;

// Returns the difference; 0 for totals that run backwards.
double Grown(uint64_t from, uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0.0;
}

// Returns richer / poorer within [1, kProportionMax]. A richer step never costs less; measurements
// that show otherwise are noise.
double ProportionOf(double raised, double lower_level) {
  if (raised <= lower_level || raised <= 0) return 1;
  return std::min(raised / std::max(lower_level, raised / OverheadGovernor::kProportionMax),
                  OverheadGovernor::kProportionMax);
}

}  // namespace

OverheadGovernor::OverheadGovernor(const OverheadBudget& budget, uint32_t steps)
    : budget_(budget), steps_(std::clamp<uint32_t>(steps, 1, kFidelityLevels)) {}

void OverheadGovernor::Begin(uint64_t now_ns, const OverheadTotals& totals) {
  begun_ = true;
  window_.assign(1, {now_ns, totals});
  cost_.reset();
  calm_since_ns_.reset();
}

void OverheadGovernor::Measure(uint64_t now_ns, const OverheadTotals& totals) {
  if (now_ns < window_.back().at_ns) return;
  if (window_.size() > 1 && now_ns - window_[window_.size() - 2].at_ns < kSampleNs) {
    window_.back() = {now_ns, totals};
  } else {
    window_.push_back({now_ns, totals});
  }
  // Keeps one sample that is at least a window old.
  while (window_.size() > 2 && now_ns - window_[1].at_ns >= kWindowNs) window_.pop_front();
  const Sample& first = window_.front();
  const uint64_t ns = now_ns - first.at_ns;
  if (ns < kWindowNs) return;
  const double seconds = static_cast<double>(ns) * 1e-9;
  cost_ = {Grown(first.totals.core_ns, totals.core_ns) * 1e-3 / seconds,
           Grown(first.totals.bytes, totals.bytes) / seconds};
}

void OverheadGovernor::Learn(uint64_t now_ns) {
  // Learned once per step down, with the first complete measurement of the poorer step.
  if (!cost_before_) return;
  proportions_[step_] = {ProportionOf(cost_before_->core_ppm, cost_->core_ppm),
                         ProportionOf(cost_before_->bytes_per_second, cost_->bytes_per_second),
                         now_ns};
  cost_before_.reset();
}

bool OverheadGovernor::CoreIsOver(double share, double core_ppm) const {
  return budget_.core_ppm > 0 && core_ppm > share * budget_.core_ppm;
}

bool OverheadGovernor::BytesAreOver(double share, double bytes_per_second) const {
  return budget_.bytes_per_second > 0 &&
         bytes_per_second > share * static_cast<double>(budget_.bytes_per_second);
}

bool OverheadGovernor::CanRaiseFidelity(uint64_t now_ns) const {
  const Proportion& known = proportions_[step_];
  // The trust in the ratio halves in this time, which grows with each mistake.
  const double half_ns = static_cast<double>(kHalfBelievedNs) * static_cast<double>(pause_ns_) /
                         static_cast<double>(kPauseMinNs);
  const double believed = std::exp2(-static_cast<double>(now_ns - known.at_ns) / half_ns);
  const auto raised = [believed](double cost, double proportion) {
    return cost * (1 + (proportion - 1) * believed);
  };
  return !CoreIsOver(kRaiseFidelityShare, raised(cost_->core_ppm, known.core)) &&
         !BytesAreOver(kRaiseFidelityShare, raised(cost_->bytes_per_second, known.bytes));
}

OverheadGovernor::Decision OverheadGovernor::LowerFidelity(uint64_t now_ns) {
  if (raised_at_ns_) {
    const bool was_mistake = now_ns - *raised_at_ns_ < kSoonNs;
    pause_ns_ = was_mistake ? std::min(2 * pause_ns_, kPauseMaxNs) : kPauseMinNs;
    raised_at_ns_.reset();
  }
  // Also the first time: a burst that ended must not be answered with a richer step at once.
  next_raise_ns_ = now_ns + pause_ns_;
  // The ratio to the next step's cost is learned from this.
  cost_before_ = cost_;
  begun_ = false;
  return {++step_, true, !CoreIsOver(1, cost_->core_ppm), *cost_};
}

OverheadGovernor::Decision OverheadGovernor::RaiseFidelity(uint64_t now_ns) {
  if (raised_at_ns_ && now_ns - *raised_at_ns_ >= kSoonNs) pause_ns_ = kPauseMinNs;
  raised_at_ns_ = now_ns;
  next_raise_ns_ = now_ns + pause_ns_;
  cost_before_.reset();
  begun_ = false;
  return {--step_, false, false, *cost_};
}

// A poorer step is decided at once, a richer one only after a calm time: exceeding the budget is
// worse than recording less.
std::optional<OverheadGovernor::Decision> OverheadGovernor::Observe(uint64_t now_ns,
                                                                    const OverheadTotals& totals) {
  if (!begun_ || !budget_.any()) return std::nullopt;
  Measure(now_ns, totals);
  if (!cost_) return std::nullopt;
  Learn(now_ns);
  if (CoreIsOver(1, cost_->core_ppm) || BytesAreOver(1, cost_->bytes_per_second)) {
    calm_since_ns_.reset();
    // The poorest step is kept even if it exceeds the budget: recording nothing is not an option
    // here.
    if (step_ + 1 >= steps_) return std::nullopt;
    return LowerFidelity(now_ns);
  }
  if (step_ == 0 || !CanRaiseFidelity(now_ns)) {
    calm_since_ns_.reset();
    return std::nullopt;
  }
  if (!calm_since_ns_) calm_since_ns_ = now_ns;
  if (now_ns - *calm_since_ns_ < kCalmNs || now_ns < next_raise_ns_) return std::nullopt;
  return RaiseFidelity(now_ns);
}

}  // namespace neurontrace
