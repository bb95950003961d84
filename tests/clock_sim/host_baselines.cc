// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/clock_sim/host_method.h"
#include "tests/clock_sim/minus.h"

namespace neurontrace {
namespace {

// What a method for one smooth clock sees: nanoseconds relative to an origin, on the axis that the
// stamps are on. reference - local is between `low` (at receive) and `high` (at send).
struct Sample {
  uint64_t order = 0;  // raw, of the receipt
  double send = 0;
  double receive = 0;
  double low = 0;
  double high = 0;
  double RoundTrip() const { return high - low; }
  double Middle() const { return (low + high) / 2; }
  double MiddleX() const { return (send + receive) / 2; }
};

struct Ask {
  uint64_t order = 0;  // raw
  double x = 0;
};

// reference - local, relative to the same origin.
struct Answer {
  double offset = 0;
  double bound = Mapped::kNoBound;
};

// Answers each ask of one reference epoch. True: gave up, the answers are guesses.
using MapSamples = bool (*)(std::span<const Sample> samples, std::span<const Ask> asks,
                            std::span<Answer> answers);

struct Origin {
  uint64_t local = 0;
  uint64_t offset = 0;  // reference - local there; wraps
};

std::vector<Sample> MakeSamples(const HostRecords& records, bool realtime, size_t begin, size_t end,
                                const Origin& origin) {
  std::vector<Sample> samples;
  samples.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) {
    const ClockExchange& exchange = records.evidence.exchanges[i];
    const uint64_t send = realtime ? records.realtime[i].send_ns : exchange.send_raw_ns;
    const uint64_t receive = realtime ? records.realtime[i].receive_ns : exchange.receive_raw_ns;
    samples.push_back({.order = exchange.receive_raw_ns,
                       .send = Minus(send, origin.local),
                       .receive = Minus(receive, origin.local),
                       .low = Minus(exchange.reference_send_ns - receive, origin.offset),
                       .high = Minus(exchange.reference_receive_ns - send, origin.offset)});
  }
  return samples;
}

// Cuts the records where the reference restarted, which a method without epochs is spared, and
// lets it map each part by itself.
HostMapping MapEpochs(const HostRecords& records, bool realtime_stamps,
                      std::span<const Stamp> stamps, MapSamples method) {
  const std::vector<ClockExchange>& exchanges = records.evidence.exchanges;
  HostMapping mapping;
  mapping.mapped.resize(stamps.size());
  size_t stamp_begin = 0;
  for (size_t begin = 0; begin < exchanges.size();) {
    const auto next = std::find_if(exchanges.begin() + static_cast<ptrdiff_t>(begin),
                                   exchanges.end(), [&](const ClockExchange& e) {
                                     return e.reference_epoch != exchanges[begin].reference_epoch;
                                   });
    const size_t end = static_cast<size_t>(next - exchanges.begin());
    size_t stamp_end = stamps.size();
    if (next != exchanges.end()) {
      stamp_end = stamp_begin;
      while (stamp_end < stamps.size() && stamps[stamp_end].raw_ns < next->send_raw_ns) ++stamp_end;
    }
    const ClockExchange& first = exchanges[begin];
    const uint64_t local = realtime_stamps ? records.realtime[begin].send_ns : first.send_raw_ns;
    const Origin origin{.local = local, .offset = first.reference_receive_ns - local};
    const std::vector<Sample> samples = MakeSamples(records, realtime_stamps, begin, end, origin);
    std::vector<Ask> asks;
    for (size_t i = stamp_begin; i < stamp_end; ++i) {
      const uint64_t x = realtime_stamps ? stamps[i].realtime_ns : stamps[i].raw_ns;
      asks.push_back({.order = stamps[i].raw_ns, .x = Minus(x, origin.local)});
    }
    std::vector<Answer> answers(asks.size());
    mapping.gave_up = method(samples, asks, answers) || mapping.gave_up;
    for (size_t i = 0; i < asks.size(); ++i) {
      const Stamp& stamp = stamps[stamp_begin + i];
      const uint64_t x = realtime_stamps ? stamp.realtime_ns : stamp.raw_ns;
      const uint64_t moved = static_cast<uint64_t>(std::llround(answers[i].offset));
      mapping.mapped[stamp_begin + i] = {.reference_ns = x + origin.offset + moved,
                                         .bound_ns = answers[i].bound,
                                         .likely_bound_ns = answers[i].bound};
    }
    stamp_begin = stamp_end;
    begin = end;
  }
  return mapping;
}

// B0, Perfetto's RemoteClockSynchronizer: one offset, the mean of all that was measured; rate 1.
bool AverageOffset(std::span<const Sample> samples, std::span<const Ask> asks,
                   std::span<Answer> answers) {
  double sum = 0;
  for (const Sample& sample : samples) sum += sample.Middle();
  for (size_t i = 0; i < asks.size(); ++i) {
    answers[i].offset = sum / static_cast<double>(samples.size());
  }
  return false;
}

// B1, RFC 5905's clock filter: of the last eight samples that with the least round trip counts,
// half of that and 15 ppm of its age are its bound.
bool ClockFilter(std::span<const Sample> samples, std::span<const Ask> asks,
                 std::span<Answer> answers) {
  constexpr size_t kKept = 8;
  constexpr double kDispersion = 15e-6;
  size_t known = 0;  // samples before the ask
  for (size_t i = 0; i < asks.size(); ++i) {
    while (known < samples.size() && samples[known].order <= asks[i].order) ++known;
    const size_t end = std::max(known, std::min(kKept, samples.size()));
    const auto best = std::min_element(
        samples.begin() + static_cast<ptrdiff_t>(end - std::min(end, kKept)),
        samples.begin() + static_cast<ptrdiff_t>(end),
        [](const Sample& a, const Sample& b) { return a.RoundTrip() < b.RoundTrip(); });
    answers[i] = {
        .offset = best->Middle(),
        .bound = best->RoundTrip() / 2 + kDispersion * std::abs(asks[i].x - best->MiddleX())};
  }
  return false;
}

// Least squares through the middles.
void FitLine(std::span<const Sample> samples, std::span<const Ask> asks,
             std::span<Answer> answers) {
  const double count = static_cast<double>(samples.size());
  double mean_x = 0;
  double mean_offset = 0;
  for (const Sample& sample : samples) {
    mean_x += sample.MiddleX() / count;
    mean_offset += sample.Middle() / count;
  }
  double xx = 0;
  double xy = 0;
  for (const Sample& sample : samples) {
    const double dx = sample.MiddleX() - mean_x;
    xx += dx * dx;
    xy += dx * (sample.Middle() - mean_offset);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  for (size_t i = 0; i < asks.size(); ++i) {
    answers[i].offset = mean_offset + slope * (asks[i].x - mean_x);
  }
}

// B2: linear regression over all samples.
bool Regression(std::span<const Sample> samples, std::span<const Ask> asks,
                std::span<Answer> answers) {
  FitLine(samples, asks, answers);
  return false;
}

// B2': linear regression over the best of each eight samples.
bool RegressionOfBest(std::span<const Sample> samples, std::span<const Ask> asks,
                      std::span<Answer> answers) {
  constexpr size_t kBlock = 8;
  std::vector<Sample> best;
  for (size_t begin = 0; begin == 0 || begin + kBlock <= samples.size(); begin += kBlock) {
    const std::span<const Sample> block =
        samples.subspan(begin, std::min(kBlock, samples.size() - begin));
    best.push_back(*std::min_element(
        block.begin(), block.end(),
        [](const Sample& a, const Sample& b) { return a.RoundTrip() < b.RoundTrip(); }));
  }
  FitLine(best, asks, answers);
  return false;
}

struct Line {
  double offset;
  double slope;
  double At(double x) const { return offset + slope * x; }
};

// Of the lines in the convex hull of `lines`, those with sign * (line at x - limit) <= 0.
std::vector<Line> Clip(const std::vector<Line>& lines, double x, double limit, double sign) {
  std::vector<Line> kept;
  kept.reserve(lines.size() + 2);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& a = lines[i];
    const Line& b = lines[(i + 1) % lines.size()];
    const double over_a = sign * (a.At(x) - limit);
    const double over_b = sign * (b.At(x) - limit);
    if (over_a <= 0) kept.push_back(a);
    if ((over_a < 0 && over_b > 0) || (over_a > 0 && over_b < 0)) {
      const double share = over_a / (over_a - over_b);
      kept.push_back(
          {a.offset + share * (b.offset - a.offset), a.slope + share * (b.slope - a.slope)});
    }
  }
  return kept;
}

// B3, LTTng and Trace Compass ("fully incremental"): of all lines between the hull of the lower and
// that of the upper ends, the mean of the steepest and the flattest. The bound is how far any of
// these lines is from it. A sample that leaves no line is skipped, and the method gives up.
bool GlobalHull(std::span<const Sample> samples, std::span<const Ask> asks,
                std::span<Answer> answers) {
  constexpr double kOffsetMost = 10e9;
  constexpr double kSlopeMost = 0.2;
  std::vector<Line> lines = {{-kOffsetMost, -kSlopeMost},
                             {kOffsetMost, -kSlopeMost},
                             {kOffsetMost, kSlopeMost},
                             {-kOffsetMost, kSlopeMost}};
  const double origin = samples[samples.size() / 2].send;
  bool gave_up = false;
  const auto clip = [&](double x, double limit, double sign) {
    std::vector<Line> clipped = Clip(lines, x - origin, limit, sign);
    gave_up = gave_up || clipped.empty();
    if (!clipped.empty()) lines = std::move(clipped);
  };
  for (const Sample& sample : samples) {
    clip(sample.send, sample.high, 1);
    clip(sample.receive, sample.low, -1);
  }
  const auto [flattest, steepest] = std::minmax_element(
      lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.slope < b.slope; });
  const Line middle{(flattest->offset + steepest->offset) / 2,
                    (flattest->slope + steepest->slope) / 2};
  for (size_t i = 0; i < asks.size(); ++i) {
    const double x = asks[i].x - origin;
    double bound = 0;
    for (const Line& line : lines) bound = std::max(bound, std::abs(line.At(x) - middle.At(x)));
    answers[i] = {.offset = middle.At(x), .bound = bound};
  }
  return gave_up;
}

template <MapSamples kMethod>
HostMapping Map(const HostRecords& records, bool realtime_stamps, std::span<const Stamp> stamps) {
  return MapEpochs(records, realtime_stamps, stamps, kMethod);
}

constexpr std::array<HostMethod, 5> kBaselines = {{
    {.name = "B0 perfetto", .map = Map<AverageOffset>},
    {.name = "B1 NTP min-of-8", .map = Map<ClockFilter>},
    {.name = "B2 regression", .map = Map<Regression>},
    {.name = "B2' regression min-of-8", .map = Map<RegressionOfBest>},
    {.name = "B3 hull", .map = Map<GlobalHull>},
}};

}  // namespace

std::span<const HostMethod> HostBaselines() { return kBaselines; }

}  // namespace neurontrace
