// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/baselines.h"

#include <algorithm>

namespace neurontrace {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

const char* BaselineName(Baseline baseline) {
  switch (baseline) {
    case Baseline::kLastArriver:
      return "last arriver";
    case Baseline::kLongestCollective:
      return "longest collective";
    case Baseline::kBestShare:
      return "0.75 of the best";
    case Baseline::kOwnHistory:
      return "1.1 x own history";
    case Baseline::kStagePeers:
      return "1.15 x stage peers";
  }
  return "";
}

BaselineSink::BaselineSink(const FleetPlan& plan) : plan_(plan), ranks_(plan.ranks()) {
  for (Rank& rank : ranks_) rank.step_end_ns = plan.start_ns;
}

void BaselineSink::Take(std::span<const FleetEvent> events) {
  for (const FleetEvent& event : events) {
    if (event.is_open) continue;
    Rank& rank = ranks_[event.rank];
    const auto length_ns = static_cast<double>(event.true_end_ns - event.true_start_ns);
    if (event.op != FleetOp::kNone) {
      rank.sums.meeting_ns += length_ns;
      if (event.type != FleetEventType::kHostBarrier) rank.sums.device_meeting_ns += length_ns;
      if (event.type == FleetEventType::kCollective) AddOperation(event);
    }
    if (event.type == FleetEventType::kRun) rank.sums.running_ns += length_ns;
    // The optimizer ends a step.
    if (event.type == FleetEventType::kExecute && event.model % 3 == 2)
      EndStep(event.rank, event.true_end_ns);
  }
}

void BaselineSink::AddOperation(const FleetEvent& event) {
  Rank& rank = ranks_[event.rank];
  const uint64_t length_ns = event.true_end_ns - event.true_start_ns;
  rank.longest_ns = std::max(rank.longest_ns, length_ns);
  if (collectives_++ % 64 == 0) collective_ns_.push_back(static_cast<double>(length_ns));
  if (event.op != FleetOp::kTensor && event.op != FleetOp::kData) return;
  const size_t kind = event.op == FleetOp::kTensor ? 0 : 1;
  ++rank.operations[kind];
  const auto key = std::make_pair(event.group, event.exec_id);
  Arrival& arrival = arrivals_[key];
  if (arrival.members++ == 0 || event.true_start_ns > arrival.time_ns) {
    arrival.time_ns = event.true_start_ns;
    arrival.rank = event.rank;
  }
  if (arrival.members < (kind == 0 ? plan_.tp : plan_.dp)) return;
  ++ranks_[arrival.rank].last[kind];
  arrivals_.erase(key);
}

void BaselineSink::EndStep(uint32_t number, uint64_t end_ns) {
  Rank& rank = ranks_[number];
  rank.own_ns.push_back(static_cast<double>(end_ns - rank.step_end_ns) - rank.sums.meeting_ns);
  rank.device_ns.push_back(rank.sums.running_ns - rank.sums.device_meeting_ns);
  rank.step_end_ns = end_ns;
  rank.sums = {};
}

std::vector<uint32_t> BaselineSink::NamedByHistory() const {
  std::vector<uint32_t> named;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    const std::vector<double>& own = ranks_[i].own_ns;
    const auto middle = own.begin() + static_cast<ptrdiff_t>(own.size() / 2);
    const double before = Median({own.begin(), middle});
    if (before > 0 && Median({middle, own.end()}) > 1.1 * before) named.push_back(i);
  }
  return named;
}

std::vector<uint32_t> BaselineSink::NamedByPeers() const {
  std::vector<std::vector<double>> by_stage(plan_.pp);
  std::vector<double> own(ranks_.size());
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    own[i] = Median(ranks_[i].own_ns);
    if (own[i] > 0) by_stage[plan_.stage_of(i)].push_back(own[i]);
  }
  std::vector<double> medians;
  for (const std::vector<double>& stage : by_stage) medians.push_back(Median(stage));
  std::vector<uint32_t> named;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    if (own[i] > 1.15 * medians[plan_.stage_of(i)]) named.push_back(i);
  }
  return named;
}

std::vector<uint32_t> BaselineSink::Named(Baseline baseline) const {
  std::vector<uint32_t> named;
  switch (baseline) {
    case Baseline::kLastArriver:
      for (uint32_t i = 0; i < ranks_.size(); ++i) {
        const Rank& rank = ranks_[i];
        const bool is_last = rank.last[0] * 2 > std::max(rank.operations[0], 4u) ||
                             rank.last[1] * 2 > std::max(rank.operations[1], 4u);
        if (is_last) named.push_back(i);
      }
      return named;
    case Baseline::kLongestCollective: {
      const auto longest = std::max_element(
          ranks_.begin(), ranks_.end(),
          [](const Rank& a, const Rank& b) { return a.longest_ns < b.longest_ns; });
      if (static_cast<double>(longest->longest_ns) > 1.5 * Median(collective_ns_))
        named.push_back(static_cast<uint32_t>(longest - ranks_.begin()));
      return named;
    }
    case Baseline::kBestShare: {
      std::vector<double> device;
      double best = 0;
      for (const Rank& rank : ranks_) {
        device.push_back(Median(rank.device_ns));
        if (device.back() > 0 && (best == 0 || device.back() < best)) best = device.back();
      }
      for (uint32_t i = 0; i < device.size(); ++i) {
        if (best < 0.75 * device[i]) named.push_back(i);
      }
      return named;
    }
    case Baseline::kOwnHistory:
      return NamedByHistory();
    case Baseline::kStagePeers:
      return NamedByPeers();
  }
  return named;
}

}  // namespace neurontrace
