// SPDX-License-Identifier: Apache-2.0
// The part of TapSource that happens by the clock: reading in turns, and upkeep.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "agent/source/neuron/reading_order.h"
#include "agent/source/neuron/tap_source.h"

namespace neurontrace {
namespace {

// A worker's share of one turn; turns follow each other as long as there is more.
constexpr size_t kBytesPerWorker = 2u << 20;
// Between turns while data comes, so that a turn has something to do; taps are not asked to wake.
constexpr uint64_t kBusyPauseNs = 10'000'000;
constexpr uint64_t kTickNs = 200'000'000;
constexpr uint64_t kGreetingPatienceNs = 10'000'000'000;
constexpr size_t kDepartedMax = 256;

}  // namespace

void TapSource::After(uint64_t delay_ns, void (TapSource::*member)()) {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this, member] { (this->*member)(); }), delay_ns);
}

void TapSource::ScheduleTurn(uint64_t delay_ns) {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  After(delay_ns, &TapSource::Turn);
}

std::vector<TapWorker*> TapSource::WorkersToRead() {
  std::vector<WaitingReader> waiting;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const TapWorker& worker = *workers_[i];
    if (worker.HasMore()) waiting.push_back({i, worker.NsToBufferFull(), worker.last_turn()});
  }
  std::vector<TapWorker*> workers;
  for (const WaitingReader& reader : ReadingOrder(std::move(waiting), ++turn_)) {
    workers.push_back(workers_[reader.index].get());
  }
  return workers;
}

TapSource::Headroom TapSource::headroom() const {
  Headroom headroom;
  for (const auto& worker : workers_) {
    worker->AddRingHeadroom(headroom.rings);
    const uint64_t ns = worker->NsToBufferFull();
    if (ns != FillRate::kUnknownNs) headroom.buffer = std::min(headroom.buffer.value_or(ns), ns);
  }
  return headroom;
}

std::map<uint32_t, TapWorker::Load> TapSource::loads() const {
  std::map<uint32_t, TapWorker::Load> loads;
  for (const auto& worker : workers_) loads[worker->identity().pid] = worker->load();
  return loads;
}

void TapSource::Turn() {
  turn_scheduled_ = false;
  bool more = false;
  bool any = false;
  std::vector<TapSession*> broken;
  for (TapWorker* const worker : WorkersToRead()) {
    const uint64_t before = worker->reader().position();
    const absl::StatusOr<bool> read = worker->Read(kBytesPerWorker);
    if (worker->reader().position() != before) {
      any = true;
      worker->NoteTurn(turn_);
    }
    if (read.ok()) {
      more = more || *read;
      continue;
    }
    AgentSourceMetrics::Add(metrics_.taps_misbehaved);
    spdlog::warn("worker {} was disconnected: {}", ToString(worker->identity()),
                 std::string(read.status().message()));
    for (const auto& [session, connection] : connections_) {
      if (connection.worker == worker) broken.push_back(session);
    }
  }
  for (TapSession* const session : broken) CloseConnection(*session);
  if (more) return ScheduleTurn(0);
  if (!any) {
    for (const auto& worker : workers_) any = worker->WaitForMore() || any;
  }
  if (any) ScheduleTurn(kBusyPauseNs);
}

void TapSource::Tick() {
  After(kTickNs, &TapSource::Tick);
  DropSilentConnections();
  for (const auto& worker : workers_) worker->Tick();
  for (auto& [id, capture] : captures_) {
    if (capture.awaits_workers) EndOrphans(capture);
  }
  ResolveRanks();
  JoinWhatChanged();
  RemoveDoneWorkers();
  ScheduleTurn(0);
}

void TapSource::Flush() {
  for (const auto& worker : workers_) worker->Flush();
}

void TapSource::DropSilentConnections() {
  std::vector<TapSession*> silent;
  for (const auto& [key, connection] : connections_) {
    if (!key->greeted() && clock_.MonotonicNs() - key->connected_ns() >= kGreetingPatienceNs) {
      silent.push_back(key);
    }
  }
  for (TapSession* const session : silent) {
    AgentSourceMetrics::Add(metrics_.taps_refused);
    CloseConnection(*session);
  }
}

// Which workers may be given a place, in the order of workers_.
std::vector<bool> TapSource::FindPlaceable() const {
  const uint64_t now_ns = clock_.MonotonicNs();
  std::map<std::string_view, uint64_t> newest;  // arrival of each job's
  for (const auto& worker : workers_) {
    uint64_t& arrived = newest[worker->job()];
    arrived = std::max(arrived, worker->arrived_ns());
  }
  std::vector<bool> placeable;
  for (const auto& worker : workers_) {
    placeable.push_back(now_ns - started_ns_ >= kPlacePatienceNs &&
                        (now_ns - newest[worker->job()] >= kPlacePauseNs ||
                         now_ns - worker->arrived_ns() >= kPlaceWaitMaxNs));
  }
  return placeable;
}

void TapSource::ResolveRanks() {
  bool changed = std::exchange(membership_changed_, false);
  const std::vector<bool> placeable = FindPlaceable();
  for (size_t i = 0; i < workers_.size(); ++i) {
    changed = workers_[i]->TakeRanksChanged() || changed;
    changed = changed || (placeable[i] && workers_[i]->AwaitsPlace());
  }
  if (!changed) return;
  std::vector<RankFacts> facts;
  for (size_t i = 0; i < workers_.size(); ++i) {
    facts.push_back(workers_[i]->rank_facts());
    facts.back().may_be_placed = placeable[i];
  }
  facts.insert(facts.end(), departed_.begin(), departed_.end());
  const std::vector<RankResolution> ranks = ranks_(facts);
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i]->SetRanks(ranks[i], placeable[i]);
}

void TapSource::ForgetDeparted() {
  std::vector<RankFacts> here;
  for (const auto& worker : workers_) here.push_back(worker->rank_facts());
  std::erase_if(departed_, [&](const RankFacts& departed) {
    return std::none_of(here.begin(), here.end(),
                        [&](const RankFacts& facts) { return RanTogether(facts, departed); });
  });
  if (departed_.size() <= kDepartedMax) return;
  departed_.erase(departed_.begin(), departed_.end() - static_cast<ptrdiff_t>(kDepartedMax));
}

void TapSource::RemoveDoneWorkers() {
  const size_t before = workers_.size();
  for (const auto& worker : workers_) {
    if (!worker->done()) continue;
    departed_.push_back(worker->rank_facts());
    if (!departed_.back().ended_ns) departed_.back().ended_ns = clock_.MonotonicNs();
  }
  std::erase_if(workers_, [](const auto& worker) { return worker->done(); });
  if (workers_.size() == before) return;
  ForgetDeparted();
  membership_changed_ = true;
  metrics_.workers.store(workers_.size(), std::memory_order_relaxed);
}

}  // namespace neurontrace
