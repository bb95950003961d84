// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// Counters restart without notice, so the evidence itself has to show where. Anchors tie the
// counter to the host's clock from both sides. In the order of the ring, each is compared with the
// smooth clock of those before it. Three in a row that fit each other but not that clock begin a
// new part. A few that fit nothing are rejected. Each comparison takes constant time, so dividing
// is linear in the evidence, except for the sorting of numbers that have to ascend.

std::string_view DescribeFault(DeviceFault fault) {
  switch (fault) {
    case DeviceFault::kImpossible:
      return "events without times, or that end before they begin";
    case DeviceFault::kFitsNothing:
      return "executions whose times contradict all others";
    case DeviceFault::kOutOfOrder:
      return "executions or sync points out of order";
    case DeviceFault::kNowhere:
      return "sync points between two runs of the counter";
    case DeviceFault::kOffCurve:
      return "sync points far from all others";
    case DeviceFault::kBeyondBracket:
      return "sync points outside the limits of cause and effect";
    case DeviceFault::kAlone:
      return "sync points that contradict their neighbours";
    case DeviceFault::kContradiction:
      return "readings that contradict earlier and later ones";
  }
  return "";
}

// Ties a counter to a clock at about one time from both sides.
struct ClockAnchor {
  ClockConstraint first;
  ClockConstraint second;  // its x is not before the first's
  // Its place in the ring.
  uint64_t sequence = 0;
};

// A division of anchors into runs of one clock; `anchors` and `rejected` are indices.
struct AnchorSegments {
  struct Segment {
    SegmentCause cause = SegmentCause::kBegin;
    std::vector<size_t> anchors;  // ascending
  };
  std::vector<Segment> segments;
  std::vector<size_t> rejected;  // anchors that fit no segment, ascending
};

// This many consecutive anchors that fit each other are no accident.
constexpr size_t kAgreeing = 3;
// At the end of the evidence, where no more can come, fewer suffice.
constexpr size_t kAgreeingAtEnd = 2;

// Anchors that one smooth clock explains.
class Group {
 public:
  // `parameters` must outlive the group.
  explicit Group(const PairParameters& parameters) : parameters_(&parameters) {}

  // Returns false, and changes nothing, if the anchor does not fit.
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

// Compares each anchor with the current segment and with those that did not fit it.
class AnchorParter {
 public:
  AnchorParter(std::span<const ClockAnchor> anchors, const PairParameters& parameters)
      : anchors_(anchors), parameters_(parameters), current_(parameters), held_(parameters) {}

  // At the end fewer anchors suffice, because no more can follow.
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
  // Decides about anchor i: it continues the current segment, or joins those held, or is rejected.
  void Take(size_t i) {
    if (current_.Add(i, anchors_[i])) return Reject(held_);
    if (!held_.Add(i, anchors_[i])) {
      Reject(held_);
      if (!held_.Add(i, anchors_[i])) result_.rejected.push_back(i);  // contradicts itself
    }
    if (held_.size() >= kAgreeing) Finish();
  }

  // The anchors held so far become the current segment. Too small a segment is rejected rather than
  // shown as a run of its own.
  void Finish() {
    if (current_.size() >= kAgreeingAtEnd) {
      Emit(current_);
    } else {
      Reject(current_);
    }
    current_ = held_;
    held_ = Group(parameters_);
  }

  // Adds a finished segment. Its cause is visible in the counter: a restart makes it smaller.
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

  // Rejects the anchors of a group and empties it.
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

// Divides anchors, in the order of the ring, where the counter restarted or stepped. An anchor that
// does not fit is held. Once three consecutive ones fit each other, they form a new segment; if the
// current segment continues instead, they are rejected.
AnchorSegments PartAnchors(std::span<const ClockAnchor> anchors, const PairParameters& parameters) {
  return AnchorParter(anchors, parameters).Run();
}

// Returns which values are outside the longest strictly ascending subsequence (patience sorting).
// One bad value then costs only itself, however far off it is.
std::vector<bool> OutOfOrder(std::span<const uint64_t> values) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> last_of;  // by length: the subsequence with the smallest end
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

// If more numbers are out of order, they do not follow the order of executions and tell nothing.
// The limit is a share of all numbers.
constexpr double kOutOfOrderMost = 0.2;
// The neutral element of Extend.
constexpr DeviceSegmentRange kEmptyRange = {UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX, 0};

// Returns whether a time is missing or small enough for the arithmetic of the fits.
bool IsTime(const std::optional<uint64_t>& time) {
  return !time.has_value() || *time < kEvidenceTimeMaxNs;
}

// Returns whether all times are usable and the device did not end before it began.
bool IsSane(const DeviceExecution& e) {
  const bool ends_early = e.device_start_ns.has_value() && e.device_end_ns.has_value() &&
                          *e.device_end_ns < *e.device_start_ns;
  return IsTime(e.host_before_ns) && IsTime(e.host_after_ns) && IsTime(e.device_start_ns) &&
         IsTime(e.device_end_ns) && !ends_early;
}

bool IsSane(const DeviceSyncPoint& p) {
  return p.device_ns < kEvidenceTimeMaxNs && p.host_ns < kEvidenceTimeMaxNs &&
         IsTime(p.recorded_ns);
}

// Returns whether both times of a bracket are there.
bool HasStart(const DeviceExecution& e) { return e.host_before_ns && e.device_start_ns; }
bool HasEnd(const DeviceExecution& e) { return e.host_after_ns && e.device_end_ns; }

// Return one bracket as a constraint: the host's time limits y from one side at the device's time.
ClockConstraint StartOf(const DeviceExecution& e) {
  return {.x_ns = *e.device_start_ns, .y_min_ns = *e.host_before_ns};
}

ClockConstraint EndOf(const DeviceExecution& e) {
  return {.x_ns = *e.device_end_ns, .y_max_ns = *e.host_after_ns};
}

// Extends a range by the places `first` to `last` and by an execution.
void Extend(DeviceSegmentRange& range, uint64_t first, uint64_t last, uint64_t exec_id) {
  range.first_sequence = std::min(range.first_sequence, first);
  range.last_sequence = std::max(range.last_sequence, last);
  range.first_exec_id = std::min(range.first_exec_id, exec_id);
  range.last_exec_id = std::max(range.last_exec_id, exec_id);
}

// Returns which ids are out of order; none if so many are that ids mean nothing here.
std::vector<bool> OutOfOrderIds(std::span<const uint64_t> ids) {
  std::vector<bool> out = OutOfOrder(ids);
  const auto count = static_cast<double>(std::count(out.begin(), out.end(), true));
  if (count > kOutOfOrderMost * static_cast<double>(ids.size())) out.assign(ids.size(), false);
  return out;
}

// One use of PartDevice.
class DeviceParter {
 public:
  DeviceParter(const DeviceEvidence& evidence, const DevicePartParameters& parameters,
               DeviceFaults& faults)
      : evidence_(evidence), parameters_(parameters), faults_(faults) {}

  std::vector<DevicePart> Run() {
    if (PartByBrackets()) {
      PlacePartialBrackets();
    } else {
      PartBySyncPoints();
    }
    PlaceSyncPoints();
    for (DevicePart& part : parts_) {
      SortSyncPoints(part);
      // The times of a range follow from its constraints, once all of them are placed.
      for (const ClockConstraint& constraint : part.hard) {
        part.range.x_begin_ns = std::min(part.range.x_begin_ns, constraint.x_ns);
        part.range.x_end_ns = std::max(part.range.x_end_ns, constraint.x_ns);
      }
    }
    return std::move(parts_);
  }

 private:
  bool PartByBrackets();
  void AddBrackets(std::span<const size_t> executions, DevicePart& part);
  void PlacePartialBrackets();
  void PartBySyncPoints();
  void PlaceSyncPoints();
  void SortSyncPoints(DevicePart& part);
  DevicePart* PartOf(uint64_t sequence, uint64_t exec_id);

  const DeviceEvidence& evidence_;
  const DevicePartParameters& parameters_;
  DeviceFaults& faults_;
  std::vector<DevicePart> parts_;
};

// Returns false if too few executions have both brackets, or none of them is in order.
bool DeviceParter::PartByBrackets() {
  std::vector<ClockAnchor> anchors;
  std::vector<size_t> execution_of;
  for (size_t i = 0; i < evidence_.executions.size(); ++i) {
    const DeviceExecution& e = evidence_.executions[i];
    if (!IsSane(e)) {
      faults_.Add(DeviceFault::kImpossible, e.device_start_ns.value_or(0));
    } else if (HasStart(e) && HasEnd(e)) {
      anchors.push_back({StartOf(e), EndOf(e), e.first_sequence});
      execution_of.push_back(i);
    }
  }
  // A single anchor may be wrong, and nothing would show it.
  if (anchors.size() < 2) return false;
  const AnchorSegments parted = PartAnchors(anchors, parameters_.pair);
  if (parted.segments.empty()) return false;
  for (const size_t anchor : parted.rejected) {
    faults_.Add(DeviceFault::kFitsNothing, anchors[anchor].first.x_ns);
  }
  for (const AnchorSegments::Segment& segment : parted.segments) {
    DevicePart part;
    part.cause = parts_.empty() ? SegmentCause::kBegin : segment.cause;
    part.range = kEmptyRange;
    std::vector<size_t> executions;
    for (const size_t anchor : segment.anchors) executions.push_back(execution_of[anchor]);
    AddBrackets(executions, part);
    // If none is in order, nothing is certain there, and the part has no place in the ring.
    if (!part.hard.empty()) parts_.push_back(std::move(part));
  }
  return !parts_.empty();
}

// Adds both brackets of every execution whose number and host times ascend with the ring. That can
// be none: the number and the host times may each be out of order in others.
void DeviceParter::AddBrackets(std::span<const size_t> executions, DevicePart& part) {
  std::vector<uint64_t> ids;
  std::vector<uint64_t> begins;
  for (const size_t i : executions) {
    ids.push_back(evidence_.executions[i].exec_id);
    begins.push_back(*evidence_.executions[i].host_before_ns);
  }
  const std::vector<bool> id_out = OutOfOrderIds(ids);
  const std::vector<bool> begin_out = OutOfOrder(begins);
  for (size_t k = 0; k < executions.size(); ++k) {
    const DeviceExecution& e = evidence_.executions[executions[k]];
    if (id_out[k] || begin_out[k]) {
      faults_.Add(DeviceFault::kOutOfOrder, *e.device_start_ns);
      continue;
    }
    part.hard.push_back(StartOf(e));
    part.hard.push_back(EndOf(e));
    Extend(part.range, e.first_sequence, e.last_sequence, e.exec_id);
  }
}

// Adds executions with one bracket. They cannot show a restart, so they only join the parts that
// complete ones have made.
void DeviceParter::PlacePartialBrackets() {
  for (const DeviceExecution& e : evidence_.executions) {
    if (!IsSane(e) || HasStart(e) == HasEnd(e)) continue;
    DevicePart* part = PartOf(e.first_sequence, e.exec_id);
    if (part != nullptr) part->hard.push_back(HasStart(e) ? StartOf(e) : EndOf(e));
  }
}

// Without brackets the sync points have to support each other. The readings of a point are taken to
// be at most apart_most_ns from each other.
void DeviceParter::PartBySyncPoints() {
  std::vector<ClockAnchor> anchors;
  std::vector<size_t> point_of;
  for (size_t i = 0; i < evidence_.sync_points.size(); ++i) {
    const DeviceSyncPoint& p = evidence_.sync_points[i];
    if (!IsSane(p)) continue;
    const uint64_t reach = std::min(parameters_.apart_most_ns, p.host_ns);
    const ClockConstraint both{
        .x_ns = p.device_ns, .y_min_ns = p.host_ns - reach, .y_max_ns = p.host_ns + reach};
    anchors.push_back({both, both, p.sequence});
    point_of.push_back(i);
  }
  const AnchorSegments parted = PartAnchors(anchors, parameters_.pair);
  for (const AnchorSegments::Segment& segment : parted.segments) {
    DevicePart& part = parts_.emplace_back();
    part.cause = segment.cause;
    part.range = kEmptyRange;
    for (const size_t anchor : segment.anchors) {
      const DeviceSyncPoint& p = evidence_.sync_points[point_of[anchor]];
      part.hard.push_back(anchors[anchor].first);
      Extend(part.range, p.sequence, p.sequence, p.exec_id);
    }
  }
}

// Gives every sync point to the part that it belongs to, also those that made the parts.
void DeviceParter::PlaceSyncPoints() {
  for (const DeviceSyncPoint& p : evidence_.sync_points) {
    if (!IsSane(p)) {
      faults_.Add(DeviceFault::kImpossible, 0);
      continue;
    }
    DevicePart* part = PartOf(p.sequence, p.exec_id);
    if (part == nullptr) {
      faults_.Add(DeviceFault::kNowhere, p.device_ns);
    } else {
      part->sync_points.push_back(p);
    }
  }
}

// Decides by the ring; between two parts, by the execution. Returns nullptr if that leaves it open.
DevicePart* DeviceParter::PartOf(uint64_t sequence, uint64_t exec_id) {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), sequence,
      [](uint64_t s, const DevicePart& part) { return s < part.range.first_sequence; });
  if (after == parts_.begin()) return parts_.empty() ? nullptr : &parts_.front();
  DevicePart* before = &*(after - 1);
  if (after == parts_.end() || sequence <= before->range.last_sequence) return before;
  switch (SideOf(before->range, after->range, exec_id)) {
    case DeviceSegmentSide::kBefore:
      return before;
    case DeviceSegmentSide::kAfter:
      return &*after;
    default:
      return nullptr;
  }
}

// Their order must be the same by either clock and by number. Sorts by the counter and drops those
// that do not ascend by the host's clock, then those that do not ascend by number.
void DeviceParter::SortSyncPoints(DevicePart& part) {
  std::vector<DeviceSyncPoint>& points = part.sync_points;
  std::stable_sort(
      points.begin(), points.end(),
      [](const DeviceSyncPoint& a, const DeviceSyncPoint& b) { return a.device_ns < b.device_ns; });
  // Removes the points marked in `out` and counts them.
  const auto drop = [&](const std::vector<bool>& out) {
    size_t kept = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      if (out[i]) {
        faults_.Add(DeviceFault::kOutOfOrder, points[i].device_ns);
      } else {
        points[kept++] = points[i];
      }
    }
    points.resize(kept);
  };
  std::vector<uint64_t> values;
  for (const DeviceSyncPoint& p : points) values.push_back(p.host_ns);
  drop(OutOfOrder(values));
  values.clear();
  for (const DeviceSyncPoint& p : points) values.push_back(p.exec_id);
  drop(OutOfOrderIds(values));
}

}  // namespace

void DeviceFaults::Add(DeviceFault fault, uint64_t x_ns, double amount_ns) {
  Entry& entry = entries_[fault];
  if (entry.count++ == 0) entry.begin_ns = entry.end_ns = x_ns;
  entry.begin_ns = std::min(entry.begin_ns, x_ns);
  entry.end_ns = std::max(entry.end_ns, x_ns);
  if (std::abs(amount_ns) > std::abs(entry.most_ns)) entry.most_ns = amount_ns;
}

// The findings are in the order of the kinds, and so the same for the same evidence.
void DeviceFaults::WriteTo(ClockModel& model) const {
  for (const auto& [fault, entry] : entries_) {
    model.evidence_rejected += entry.count;
    model.findings.push_back({.kind = ClockFindingKind::kRejectedEvidence,
                              .x_begin_ns = entry.begin_ns,
                              .x_end_ns = entry.end_ns,
                              .amount_ns = static_cast<int64_t>(entry.most_ns),
                              .words = fmt::format("{}: {}", DescribeFault(fault), entry.count)});
  }
}

std::vector<DevicePart> PartDevice(const DeviceEvidence& evidence,
                                   const DevicePartParameters& parameters, DeviceFaults& faults) {
  return DeviceParter(evidence, parameters, faults).Run();
}

}  // namespace neurontrace
