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

// How many bytes of chunks may be received and not yet durable: over all agents, and for each of
// them, so that a loud one cannot keep a quiet one waiting. An agent's share is what all of it
// gives when it is cut among the agents that have bytes here or wait, and one more: there is room
// for the next one to come at any time. Who is over their share is not read from, which HTTP/2 flow
// control makes the agent feel; each call exceeds it by at most the one message that it was
// reading. Any thread.
class IngestBudget {
 public:
  // `metrics` says what is here and who waits, as it changes; null: nobody is told. Outlives this.
  explicit IngestBudget(size_t bytes_max, IngestMetrics* metrics = nullptr)
      : bytes_max_(bytes_max), metrics_(metrics) {}

  void Take(const std::string& agent_id, size_t bytes);
  // Lets those go on that wait for room, on this thread: one call of each agent in turn, no more
  // than the room is likely to be for; all of them when nothing is left here.
  void Release(const std::string& agent_id, size_t bytes);

  // Runs `go_on` now if there is room for the agent, else when there is, in the order of the
  // agent's asking. It must be quick.
  void WhenRoom(const std::string& agent_id, std::function<void()> go_on);

  size_t bytes() const;

 private:
  struct Agent {
    size_t bytes = 0;
    std::deque<std::function<void()>> waiting;  // at most one a call
  };

  bool HasRoom(size_t agent_bytes, size_t coming) const NT_REQUIRES(mutex_);
  std::vector<std::function<void()>> TakeReady() NT_REQUIRES(mutex_);
  void DropIdle(const std::string& agent_id) NT_REQUIRES(mutex_);
  void Tell() const NT_REQUIRES(mutex_);

  const size_t bytes_max_;
  IngestMetrics* const metrics_;
  mutable Mutex mutex_;
  size_t bytes_ NT_GUARDED_BY(mutex_) = 0;
  size_t waiting_ NT_GUARDED_BY(mutex_) = 0;                              // over all agents
  absl::flat_hash_map<std::string, Agent> agents_ NT_GUARDED_BY(mutex_);  // with bytes or waiting
  std::deque<std::string> turns_ NT_GUARDED_BY(mutex_);  // agents that wait, each once, in order
};

}  // namespace neurontrace
