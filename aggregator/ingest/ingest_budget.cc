// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/ingest_budget.h"

#include <cassert>
#include <utility>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// What a call that continues is likely to bring.
constexpr size_t kMessageBytes = limits::kChunkBytesTarget;

}  // namespace

// With nothing here there is always room: nobody would release anything and let the waiting
// continue, as calls that were let go may bring nothing.
bool IngestBudget::HasRoom(size_t agent_bytes, size_t coming) const {
  if (bytes_ == 0) return true;
  return bytes_ + coming < bytes_max_ && agent_bytes < bytes_max_ / (agents_.size() + 1);
}

void IngestBudget::DropIdle(const std::string& agent_id) {
  const auto it = agents_.find(agent_id);
  if (it != agents_.end() && it->second.bytes == 0 && it->second.waiting.empty()) agents_.erase(it);
}

// Under the lock, so that the last update shows the latest state.
void IngestBudget::UpdateMetrics() const {
  if (metrics_ == nullptr) return;
  metrics_->bytes_in_flight.Set(static_cast<double>(bytes_));
  metrics_->calls_waiting.Set(static_cast<double>(waiting_));
}

// Never refuses, because the bytes have arrived already. The limit works by delaying the next read.
void IngestBudget::Take(const std::string& agent_id, size_t bytes) {
  const MutexLock lock(mutex_);
  bytes_ += bytes;
  agents_[agent_id].bytes += bytes;
  UpdateMetrics();
}

void IngestBudget::Release(const std::string& agent_id, size_t bytes) {
  std::vector<std::function<void()>> ready;
  {
    const MutexLock lock(mutex_);
    Agent& agent = agents_[agent_id];
    assert(bytes_ >= bytes && agent.bytes >= bytes);
    bytes_ -= bytes;
    agent.bytes -= bytes;
    DropIdle(agent_id);
    ready = TakeReady();
    assert(waiting_ >= ready.size());
    waiting_ -= ready.size();
    UpdateMetrics();
  }
  // Without the lock, as they may call back.
  for (const auto& resume : ready) resume();
}

// Takes one call of each agent in turn until no waiting agent has room. The first one has room
// whatever its message brings; otherwise a budget smaller than a message would let nobody continue.
// The remaining calls continue when something here is released. They cannot rely on the calls
// taken, which may have nothing to send or be gone.
std::vector<std::function<void()>> IngestBudget::TakeReady() {
  std::vector<std::function<void()>> ready;
  absl::flat_hash_map<std::string, size_t> of_agent;  // what it is likely to bring
  size_t passed_over = 0;
  while (passed_over < turns_.size()) {
    std::string agent_id = std::move(turns_.front());
    turns_.pop_front();
    Agent& agent = agents_[agent_id];
    size_t& coming = of_agent[agent_id];
    if (!HasRoom(agent.bytes + coming, ready.size() * kMessageBytes)) {
      turns_.push_back(std::move(agent_id));
      ++passed_over;
      continue;
    }
    passed_over = 0;
    coming += kMessageBytes;
    assert(!agent.waiting.empty());  // or it would have no turn
    ready.push_back(std::move(agent.waiting.front()));
    agent.waiting.pop_front();
    if (!agent.waiting.empty()) {
      turns_.push_back(std::move(agent_id));
    } else {
      DropIdle(agent_id);
    }
  }
  return ready;
}

void IngestBudget::WhenRoom(const std::string& agent_id, std::function<void()> resume) {
  {
    const MutexLock lock(mutex_);
    const auto known = agents_.find(agent_id);
    // A call must not overtake an earlier one of the same agent that still waits.
    const bool is_first = known == agents_.end() || known->second.waiting.empty();
    const bool has_room = HasRoom(known == agents_.end() ? 0 : known->second.bytes, 0);
    if (!is_first || !has_room) {
      agents_[agent_id].waiting.push_back(std::move(resume));
      if (is_first) turns_.push_back(agent_id);
      ++waiting_;
      UpdateMetrics();
      return;
    }
  }
  // Without the lock, as it may call back.
  resume();
}

size_t IngestBudget::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace neurontrace
