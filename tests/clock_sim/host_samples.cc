// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_samples.h"

#include <algorithm>
#include <cmath>

#include "tests/clock_sim/minus.h"

namespace neurontrace {
namespace {

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

}  // namespace

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

}  // namespace neurontrace
