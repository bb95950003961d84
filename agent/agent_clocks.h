// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "agent/clock/clock_collector.h"
#include "agent/clock/clock_prober.h"
#include "agent/clock/evidence_link.h"
#include "agent/config.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/agent_info.h"

namespace neurontrace {

// Everything of an agent that is about clocks, on a thread of its own, as nothing there may wait
// for anything: builds it, connects it and owns it.
// thread: clocks: reads clocks and exchanges probes; nothing on it may wait
class AgentClocks {
 public:
  // What has been counted, as of a moment ago.
  struct Stats {
    ClockCollector::Counters collector;
    UtcSources::Counters utc;
    uint64_t snapshots_let_go = 0;
    UdpProber::Counters udp;
    uint64_t udp_without_kernel_stamp = 0;
    StreamProber::Counters stream;
    EvidenceLink::Counters link;
    uint64_t backlog_batches = 0;
    uint64_t backlog_bytes = 0;
    bool connected = false;
    bool uses_stream = false;
  };

  // Begins to work at once.
  AgentClocks(const AgentConfig& config, const AgentInfo& info);
  // Ends at once.
  ~AgentClocks();
  AgentClocks(const AgentClocks&) = delete;
  AgentClocks& operator=(const AgentClocks&) = delete;

  // Any thread: has what was measured so far sent, with how the clocks are now.
  void Flush();
  // Any thread: nothing waits that an aggregator could take.
  bool settled() const;
  Stats stats() const;

 private:
  void Start(const AgentConfig& config, const AgentInfo& info);
  void Publish();

  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;

  // Made, used and destroyed on loop_'s sequence.
  std::unique_ptr<UdpProber> udp_;
  std::unique_ptr<StreamProber> stream_;
  std::unique_ptr<ClockProber> prober_;
  std::unique_ptr<EvidenceLink> link_;
  std::unique_ptr<ClockCollector> collector_;

  mutable Mutex mutex_;
  Stats stats_ NT_GUARDED_BY(mutex_);
  bool flushing_ NT_GUARDED_BY(mutex_) = false;  // what was flushed is not in stats_ yet
  std::thread thread_;
};

}  // namespace neurontrace
