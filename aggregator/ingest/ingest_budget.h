// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Limits the bytes of chunks that are received and not yet durable, in total and per agent, so that
// a busy agent cannot keep a quiet one waiting. An agent's share is the total divided by the number
// of agents that have bytes here or wait, plus one; so there is always room for a new one.
//
// A call whose agent exceeds its share is not read from, which HTTP/2 flow control makes the agent
// feel. Each call exceeds the share by at most the one message that it was reading. Any thread.
class IngestBudget {
 public:
  // `metrics` shows bytes and waiting calls as they change; may be null, and must outlive this.
  explicit IngestBudget(size_t bytes_max, IngestMetrics* metrics = nullptr)
      : bytes_max_(bytes_max), metrics_(metrics) {}

  // Adds bytes that have arrived; never refuses.
  void Take(const std::string& agent_id, size_t bytes);
  // Removes bytes and lets waiting calls continue, on this thread: one call of each agent in turn,
  // as many as there is likely room for, and all of them if nothing is left here. Requires that the
  // agent has at least that many bytes here.
  void Release(const std::string& agent_id, size_t bytes);

  // Runs `resume` now if there is room for the agent, otherwise later, in the order of the agent's
  // requests. `resume` must be quick.
  void WhenRoom(const std::string& agent_id, std::function<void()> resume);

  // Returns the bytes that are taken at present, over all agents.
  size_t bytes() const;

 private:
  struct Agent {
    size_t bytes = 0;
    std::deque<std::function<void()>> waiting;  // at most one per call
  };

  // Returns whether a call of an agent with `agent_bytes` may read, if calls that were just let go
  // will bring `coming` bytes.
  bool HasRoom(size_t agent_bytes, size_t coming) const NT_REQUIRES(mutex_);
  std::vector<std::function<void()>> TakeReady() NT_REQUIRES(mutex_);
  // Forgets an agent without bytes and without waiting calls, because the number of known agents
  // determines everybody's share.
  void DropIdle(const std::string& agent_id) NT_REQUIRES(mutex_);
  // Publishes the present state as metrics.
  void UpdateMetrics() const NT_REQUIRES(mutex_);

  const size_t bytes_max_;
  IngestMetrics* const metrics_;
  // Not held while a waiting call continues.
  mutable Mutex mutex_;
  size_t bytes_ NT_GUARDED_BY(mutex_) = 0;
  size_t waiting_ NT_GUARDED_BY(mutex_) = 0;                              // over all agents
  absl::flat_hash_map<std::string, Agent> agents_ NT_GUARDED_BY(mutex_);  // with bytes or waiting
  std::deque<std::string> turns_ NT_GUARDED_BY(mutex_);  // waiting agents, each once, in order
};

}  // namespace neurontrace
