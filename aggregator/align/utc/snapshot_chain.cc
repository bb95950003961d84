// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/utc/snapshot_chain.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace neurontrace {
namespace {

// No kernel slews faster (tick of adjtimex(2) allows 10 %).
constexpr double kSlewMost = 0.1;
// The fastest slew by adjtime(3) or the kernel's own loop, which adjtimex(2) does not show.
constexpr double kQuietSlew = 500e-6;
constexpr double kSameRate = 1e-6;
// A reading that took longer is useless, as something else ran in between.
constexpr uint64_t kReadingNsMax = 1'000'000;
// Neighbouring lines are joined while no reading is farther than this from the joined line.
constexpr double kLineToleranceNs = 100;
constexpr size_t kLineSnapshotsMax = 64;
constexpr double kBentNs = 1'000;
constexpr uint64_t kReachNs = 3'600'000'000'000;
// A reading is wide, because its thread was preempted, if it took much longer than the best around
// it.
constexpr uint64_t kWideHalfNsMin = 2'000;
constexpr uint64_t kWideTimes = 3;
constexpr size_t kWideNeighbours = 8;
// Dropping wide readings leaves no longer gap than this, as rates are only known to kSameRate.
constexpr uint64_t kWideGapNsMax = 8'000'000'000;

// REALTIME was `realtime_ns` when raw was within `half_ns` of `raw_ns`.
struct SnapshotAnchor {
  uint64_t raw_ns = 0;
  uint64_t realtime_ns = 0;
  uint64_t half_ns = 0;

  uint64_t begin_ns() const { return raw_ns - half_ns; }
  uint64_t end_ns() const { return raw_ns + half_ns; }
};

// Returns the time from one to the other, in ns; negative if they are in the other order.
double Between(uint64_t from, uint64_t to) {
  return static_cast<double>(static_cast<int64_t>(to - from));
}

// Returns how much faster than raw REALTIME was.
double Rate(const SnapshotAnchor& a, const SnapshotAnchor& b) {
  return (Between(a.realtime_ns, b.realtime_ns) - Between(a.raw_ns, b.raw_ns)) /
         Between(a.raw_ns, b.raw_ns);
}

// Returns the possible snapshots as ties in strictly ascending order of raw.
std::vector<SnapshotAnchor> ReadAnchors(std::span<const ClockSnapshot> snapshots) {
  std::vector<SnapshotAnchor> ties;
  for (const ClockSnapshot& s : snapshots) {
    if (s.raw_end_ns < s.raw_begin_ns || s.raw_end_ns - s.raw_begin_ns > kReadingNsMax) continue;
    const uint64_t half = (s.raw_end_ns - s.raw_begin_ns + 1) / 2;
    const SnapshotAnchor tie{s.raw_begin_ns + half, s.realtime_ns, half};
    if (!ties.empty() && tie.raw_ns <= ties.back().raw_ns) continue;
    ties.push_back(tie);
  }
  return ties;
}

// Returns whether `tie` is on the line from one to the other, as far as its reading shows.
bool IsOnLine(const SnapshotAnchor& from, const SnapshotAnchor& tie, const SnapshotAnchor& to) {
  const double elapsed = Between(from.raw_ns, tie.raw_ns);
  const double beside =
      Between(from.realtime_ns, tie.realtime_ns) - elapsed - elapsed * Rate(from, to);
  return std::abs(beside) <= static_cast<double>(tie.half_ns + from.half_ns + to.half_ns);
}

bool IsWide(std::span<const SnapshotAnchor> ties, size_t i) {
  const size_t begin = i - std::min(i, kWideNeighbours);
  const size_t end = std::min(ties.size(), i + kWideNeighbours + 1);
  uint64_t best = UINT64_MAX;
  for (size_t k = begin; k < end; ++k) best = std::min(best, ties[k].half_ns);
  return ties[i].half_ns > std::max(kWideHalfNsMin, kWideTimes * best);
}

// Drops wide readings that only repeat, less well, what those around them show. A reading that
// shows a slew or a step stays, however wide, as do the outermost ones.
std::vector<SnapshotAnchor> WithoutWide(std::span<const SnapshotAnchor> ties) {
  std::vector<SnapshotAnchor> kept;
  size_t next = 0;  // the first after i that is not wide
  for (size_t i = 0; i < ties.size(); ++i) {
    const bool is_outermost = i == 0 || i + 1 == ties.size();
    if (!is_outermost && IsWide(ties, i)) {
      next = std::max(next, i + 1);
      while (next + 1 < ties.size() && IsWide(ties, next)) ++next;
      const SnapshotAnchor& before = kept.back();
      const bool is_near = ties[next].raw_ns - before.raw_ns <= kWideGapNsMax;
      if (is_near && IsOnLine(before, ties[i], ties[next])) continue;
    }
    kept.push_back(ties[i]);
  }
  return kept;
}

// Fits the ties of one chain; also knows how far beyond them the chain may extend.
class ChainMaker {
 public:
  ChainMaker(std::span<const SnapshotAnchor> ties, uint64_t raw_begin_ns, uint64_t raw_end_ns)
      : ties_(ties), raw_begin_ns_(raw_begin_ns), raw_end_ns_(raw_end_ns) {}

  SnapshotChain Run();

 private:
  double RateAfter(size_t i) const { return Rate(ties_[i], ties_[i + 1]); }
  double NoiseAfter(size_t i) const {
    return static_cast<double>(ties_[i].half_ns + ties_[i + 1].half_ns) /
           Between(ties_[i].raw_ns, ties_[i + 1].raw_ns);
  }
  // Of the readings that determine the neighbouring rates.
  double NoiseAround(size_t i) const {
    return std::max(i > 0 ? NoiseAfter(i - 1) : 0, i + 2 < ties_.size() ? NoiseAfter(i + 1) : 0);
  }
  double SagittaAfter(size_t i) const;
  double OffLine(size_t first, size_t last) const;
  size_t EndOfLine(size_t first) const;
  void AddReach(bool before, SnapshotChain& chain) const;

  std::span<const SnapshotAnchor> ties_;
  uint64_t raw_begin_ns_;
  uint64_t raw_end_ns_;
};

// Returns how far REALTIME can be from the straight line between tie i and the next, if its rate
// was never beyond the rates before, between and after. A rate between that is beyond both
// neighbours shows a slew that began and ended there, and was faster still.
//
// A fast slew can also begin between these ties and end between the next ones. Each rate is then of
// a part of it, and the slew is beyond both. It can have been ahead or back, as any of the rates
// may be the usual one. Rates differ only if they do so beyond the noise of both: a preempted
// reading makes one rate too high and the next too low, and is no slew.
double ChainMaker::SagittaAfter(size_t i) const {
  const double rate = RateAfter(i);
  const double noise = NoiseAfter(i) + kSameRate;
  double low = rate;
  double high = rate;
  if (ties_.size() > 2) {
    const size_t one = i > 0 ? i - 1 : i + 1;
    const size_t other = i + 2 < ties_.size() ? i + 1 : one;
    low = std::min(RateAfter(one) - NoiseAfter(one), RateAfter(other) - NoiseAfter(other));
    high = std::max(RateAfter(one) + NoiseAfter(one), RateAfter(other) + NoiseAfter(other));
  }
  const auto peak = [](double beyond) { return beyond > kQuietSlew ? kSlewMost : kQuietSlew; };
  const bool is_beyond = rate > high + kQuietSlew || rate < low - kQuietSlew;
  const double least = std::min(low, rate);
  const double most = std::max(high, rate);
  if (!is_beyond && most - least > kQuietSlew + 2 * std::max(noise, NoiseAround(i))) {
    high = least + kSlewMost;
    low = most - kSlewMost;
  }
  if (rate > high + 2 * noise || ties_.size() == 2) high += peak(rate - high);
  if (rate < low - 2 * noise || ties_.size() == 2) low -= peak(low - rate);
  high = std::max(high, rate) + noise;
  low = std::min(low, rate) - noise;
  return (high - rate) * (rate - low) / (high - low) *
         Between(ties_[i].raw_ns, ties_[i + 1].raw_ns);
}

// Returns how far REALTIME can be from the line from one tie to another.
double ChainMaker::OffLine(size_t first, size_t last) const {
  const double rate = Rate(ties_[first], ties_[last]);
  double off = 0;
  double before = 0;
  for (size_t i = first; i < last; ++i) {
    const SnapshotAnchor& next = ties_[i + 1];
    const double elapsed = Between(ties_[first].raw_ns, next.raw_ns);
    const double beside =
        std::abs(Between(ties_[first].realtime_ns, next.realtime_ns) - elapsed - elapsed * rate);
    const double half = static_cast<double>(std::max(ties_[i].half_ns, next.half_ns));
    off = std::max(off, std::max(before, beside) + half + SagittaAfter(i));
    before = beside;
  }
  return off;
}

size_t ChainMaker::EndOfLine(size_t first) const {
  size_t last = first + 1;
  const double least = OffLine(first, last);
  // A bent part is a line of its own, because its neighbours are known better.
  if (least > kBentNs) return last;
  const size_t most = std::min(ties_.size() - 1, first + kLineSnapshotsMax);
  while (last < most && OffLine(first, last + 1) <= least + kLineToleranceNs) ++last;
  return last;
}

// Beyond the outermost tie the rate continues, within what quiet slews allow.
void ChainMaker::AddReach(bool before, SnapshotChain& chain) const {
  const SnapshotAnchor& tie = before ? ties_.front() : ties_.back();
  double rate = 0;
  if (ties_.size() > 1) rate = before ? RateAfter(0) : RateAfter(ties_.size() - 2);
  const uint64_t room =
      std::min(kReachNs, before ? tie.raw_ns - raw_begin_ns_ : raw_end_ns_ - tie.raw_ns);
  std::vector<ClockLine> lines;
  uint64_t from = 0;
  for (uint64_t to = 5'000'000; from < room; to *= 4) {
    const uint64_t end = std::min(to, room);
    const auto moved = [&](uint64_t distance) {
      const auto ahead = static_cast<uint64_t>(static_cast<int64_t>(distance) +
                                               std::llround(static_cast<double>(distance) * rate));
      return before ? tie.realtime_ns - ahead : tie.realtime_ns + ahead;
    };
    const auto bound = static_cast<uint64_t>(
        std::ceil(static_cast<double>(tie.half_ns) + 2 * kQuietSlew * static_cast<double>(end)));
    if (before) {
      lines.insert(lines.begin(),
                   {tie.raw_ns - end, tie.raw_ns - from, moved(end), moved(from), bound});
    } else {
      lines.push_back({tie.raw_ns + from, tie.raw_ns + end, moved(from), moved(end), bound});
    }
    from = end;
  }
  chain.lines.insert(chain.lines.end(), lines.begin(), lines.end());
}

SnapshotChain ChainMaker::Run() {
  SnapshotChain chain{raw_begin_ns_, raw_end_ns_, {}};
  AddReach(true, chain);
  for (size_t i = 0; i + 1 < ties_.size();) {
    const size_t end = EndOfLine(i);
    chain.lines.push_back({ties_[i].raw_ns, ties_[end].raw_ns, ties_[i].realtime_ns,
                           ties_[end].realtime_ns,
                           static_cast<uint64_t>(std::ceil(OffLine(i, end))) + 1});
    i = end;
  }
  AddReach(false, chain);
  return chain;
}

// Returns how far the line beyond an outermost tie can be off at `raw_ns`. Where a step ends the
// line, it meets the step's timestamp that much too early or too late. It has to extend as far,
// because no timestamp may be on neither side.
uint64_t ReachUncertaintyNs(const SnapshotAnchor& outermost, uint64_t raw_ns) {
  const double distance = std::abs(Between(outermost.raw_ns, raw_ns));
  return outermost.half_ns + static_cast<uint64_t>(std::ceil(2 * kQuietSlew * distance));
}

// When REALTIME was set.
struct Step {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
};

// Returns whether REALTIME was set between two snapshots, and when, as far as the host reported it.
bool FindStep(const SnapshotAnchor& a, const SnapshotAnchor& b, const ReportedClockSteps& told,
              Step& step) {
  // A step is reported from the begin of the reading before it to the end of the one after. These
  // may be a and b themselves, and the step is then not between one of them and a third reading.
  if (const auto between = told.Between(a.end_ns(), b.begin_ns())) {
    // Several steps are treated as one from the first to the last.
    const auto& [first, last] = *between;
    step.raw_begin_ns = std::max(first->raw_begin_ns, a.raw_ns);
    step.raw_end_ns =
        std::clamp(last->raw_end_ns, std::max(last->raw_begin_ns, a.raw_ns), b.raw_ns);
    return true;
  }
  step = {a.raw_ns, b.raw_ns};
  return std::abs(Rate(a, b)) > kSlewMost;
}

}  // namespace

ReportedClockSteps::ReportedClockSteps(std::span<const ClockEvent> events) {
  for (const ClockEvent& event : events) {
    if (event.kind == ClockEventKind::kRealtimeStep) steps_.push_back(&event);
  }
  leaves_ = std::bit_ceil(std::max<size_t>(steps_.size(), 1));
  latest_.resize(2 * leaves_);
  for (size_t i = 0; i < steps_.size(); ++i) latest_[leaves_ + i] = steps_[i]->raw_end_ns;
  for (size_t n = leaves_ - 1; n > 0; --n) {
    latest_[n] = std::max(latest_[2 * n], latest_[2 * n + 1]);
  }
}

std::optional<ReportedClockSteps::Ends> ReportedClockSteps::Between(uint64_t begin_ns,
                                                                    uint64_t end_ns) const {
  const auto begun = std::partition_point(
      steps_.begin(), steps_.end(),
      [end_ns](const ClockEvent* step) { return step->raw_begin_ns < end_ns; });
  if (begun == steps_.begin()) return std::nullopt;
  const auto is_in = [&](size_t node) { return latest_[node] > begin_ns; };
  // The last: from the last that has begun to the left, and up while there is none.
  size_t node = leaves_ + static_cast<size_t>(begun - steps_.begin()) - 1;
  while (!is_in(node)) {
    while (node > 1 && node % 2 == 0) node /= 2;  // the parent has nothing further to the left
    if (node == 1) return std::nullopt;
    --node;
  }
  while (node < leaves_) node = is_in(2 * node + 1) ? 2 * node + 1 : 2 * node;
  const ClockEvent* const last = steps_[node - leaves_];
  // At least one exists, so the first of all is no later.
  node = 1;
  while (node < leaves_) node = is_in(2 * node) ? 2 * node : 2 * node + 1;
  return Ends{steps_[node - leaves_], last};
}

std::vector<SnapshotChain> ChainsOf(std::span<const ClockSnapshot> snapshots,
                                    std::span<const ClockEvent> events) {
  const std::vector<SnapshotAnchor> ties = WithoutWide(ReadAnchors(snapshots));
  const ReportedClockSteps told(events);
  std::vector<SnapshotChain> chains;
  size_t begin = 0;
  uint64_t raw_begin_ns = 0;
  for (size_t i = 0; i < ties.size(); ++i) {
    Step step;
    const bool is_last = i + 1 == ties.size();
    if (!is_last && !FindStep(ties[i], ties[i + 1], told, step)) continue;
    const uint64_t raw_end_ns =
        is_last ? UINT64_MAX : step.raw_end_ns + ReachUncertaintyNs(ties[i], step.raw_end_ns);
    const std::span<const SnapshotAnchor> own(ties.data() + begin, i + 1 - begin);
    chains.push_back(ChainMaker(own, raw_begin_ns, raw_end_ns).Run());
    begin = i + 1;
    if (!is_last) {
      raw_begin_ns = step.raw_begin_ns - ReachUncertaintyNs(ties[begin], step.raw_begin_ns);
    }
  }
  return chains;
}

}  // namespace neurontrace
