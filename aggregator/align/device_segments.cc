// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device_segments.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace neurontrace {
namespace {

// So many that fit each other are no accident.
constexpr size_t kAgreeing = 3;
// ... and at the end, where no more can come.
constexpr size_t kAgreeingAtEnd = 2;

// Anchors that one smooth clock explains.
class Group {
 public:
  explicit Group(const PairParameters& parameters) : parameters_(&parameters) {}

  // False, and nothing changes, if it does not fit.
  bool Add(size_t index, const ClockAnchor& anchor) {
    PairClock clock = clock_.has_value() ? *clock_ : PairClock(anchor.first, *parameters_);
    if (clock_.has_value() && Contradicts(clock.Add(anchor.first))) return false;
    if (Contradicts(clock.Add(anchor.second))) return false;
    clock_ = clock;
    members_.push_back(index);
    return true;
  }
  const std::vector<size_t>& members() const { return members_; }
  bool empty() const { return members_.empty(); }
  size_t size() const { return members_.size(); }

 private:
  static bool Contradicts(const PairClock::Outcome& outcome) {
    return outcome.possible == WanderFilter::Outcome::kContradiction;
  }

  const PairParameters* parameters_;
  std::optional<PairClock> clock_;
  std::vector<size_t> members_;
};

class AnchorParter {
 public:
  AnchorParter(std::span<const ClockAnchor> anchors, const PairParameters& parameters)
      : anchors_(anchors), parameters_(parameters), current_(parameters), held_(parameters) {}

  AnchorSegments Run() {
    for (size_t i = 0; i < anchors_.size(); ++i) Take(i);
    if (held_.size() >= kAgreeingAtEnd) {
      Finish();
    } else {
      Reject(held_);
    }
    if (!current_.empty()) Emit(current_);
    std::sort(result_.rejected.begin(), result_.rejected.end());
    return std::move(result_);
  }

 private:
  void Take(size_t i) {
    if (current_.Add(i, anchors_[i])) return Reject(held_);
    if (!held_.Add(i, anchors_[i])) {
      Reject(held_);
      if (!held_.Add(i, anchors_[i])) result_.rejected.push_back(i);  // contradicts itself
    }
    if (held_.size() >= kAgreeing) Finish();
  }

  // Those held are the current ones from now on.
  void Finish() {
    if (current_.size() >= kAgreeingAtEnd) {
      Emit(current_);
    } else {
      Reject(current_);
    }
    current_ = held_;
    held_ = Group(parameters_);
  }

  void Emit(const Group& group) {
    SegmentCause cause = SegmentCause::kBegin;
    if (!result_.segments.empty()) {
      const ClockAnchor& last = anchors_[result_.segments.back().anchors.back()];
      const ClockAnchor& first = anchors_[group.members().front()];
      cause = first.first.x_ns < last.second.x_ns ? SegmentCause::kCounterReset
                                                  : SegmentCause::kDetected;
    }
    result_.segments.push_back({cause, group.members()});
  }

  void Reject(Group& group) {
    result_.rejected.insert(result_.rejected.end(), group.members().begin(), group.members().end());
    group = Group(parameters_);
  }

  std::span<const ClockAnchor> anchors_;
  const PairParameters& parameters_;
  Group current_;
  Group held_;
  AnchorSegments result_;
};

}  // namespace

AnchorSegments PartAnchors(std::span<const ClockAnchor> anchors, const PairParameters& parameters) {
  return AnchorParter(anchors, parameters).Run();
}

std::vector<bool> OutOfOrder(std::span<const uint64_t> values) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> last_of;  // by length: the part of it that ends least
  std::vector<size_t> before(values.size(), kNone);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = std::lower_bound(last_of.begin(), last_of.end(), values[i],
                                     [&](size_t j, uint64_t value) { return values[j] < value; });
    if (at != last_of.begin()) before[i] = *(at - 1);
    if (at == last_of.end()) {
      last_of.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<bool> out(values.size(), true);
  for (size_t i = last_of.empty() ? kNone : last_of.back(); i != kNone; i = before[i]) {
    out[i] = false;
  }
  return out;
}

}  // namespace neurontrace
