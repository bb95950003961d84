// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "agent/clock/clock_collector.h"
#include "agent/clock/clock_prober.h"
#include "agent/clock/evidence_link.h"
#include "agent/clock/exchange_sink.h"
#include "agent/clock/probe_access.h"
#include "agent/clock/stream_prober.h"
#include "agent/clock/utc_sources.h"
#include "agent/config.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Builds, connects and owns everything of an agent that concerns clocks, on a thread of its own:
// HostClockWatch takes a late wakeup for a machine that stood still, so nothing on this thread may
// wait for a disk, a lock that is held for long, or the agent's sequence. The probers and the
// evidence link each have a gRPC channel of their own, so that a probe waits behind nothing.
//
// The measurements are described in docs/formats; the aggregator computes the alignment from them.
// Kernel timers that cannot be created are logged and leave this agent without measurements;
// captures run regardless.
// thread: clocks: reads clocks and exchanges probes; nothing on it may wait
class AgentClocks final : private ClockCollector::Listener,
                          private EvidenceLink::AccessListener,
                          private ExchangeSink {
 public:
  // Counters of all parts, as the clock thread copied them last: at most 200 ms old.
  struct Stats {
    ClockCollector::Counters collector;
    UtcSources::Counters utc;
    // Counters since the start; backlog_ and the two flags are as of the copy.
    uint64_t snapshots_dropped = 0;
    UdpProber::Counters udp;
    uint64_t udp_without_kernel_stamp = 0;
    StreamProber::Counters stream;
    EvidenceLink::Counters link;
    // Evidence that the aggregator has not acknowledged.
    uint64_t backlog_batches = 0;
    uint64_t backlog_bytes = 0;
    bool connected = false;
    bool uses_stream = false;
  };

  // Starts the thread and begins to measure. Both arguments are copied.
  AgentClocks(const AgentConfig& config, const AgentInfo& info);
  // Destroys the parts on their own sequence and joins the thread. Evidence that was not sent is
  // lost; call Flush and wait for settled() to avoid that.
  ~AgentClocks() override;
  AgentClocks(const AgentClocks&) = delete;
  AgentClocks& operator=(const AgentClocks&) = delete;

  // Takes a snapshot of the clocks and closes the open batch, so that the aggregator gets evidence
  // up to this moment. Any thread; does not wait.
  void Flush();
  // Returns true once what was flushed has been received by the aggregator, or no aggregator is
  // connected that could receive it. Any thread.
  bool settled() const;
  // Returns the latest copy. Any thread.
  Stats stats() const;

 private:
  // Builds the parts and starts to measure, on the clock thread.
  void Start(const AgentConfig& config, const AgentInfo& info);
  // Connect the parts with each other, on the clock thread: ExchangeSink, EvidenceLink's
  // AccessListener and ClockCollector::Listener. OnTick also copies the counters now and then.
  void AddExchange(const ClockExchange& exchange) override { collector_->Add(exchange); }
  void OnAccess(const std::optional<ProbeAccess>& access) override { prober_->OnWelcome(access); }
  void OnLost() override { prober_->OnLost(); }
  void OnBatch(ClockEvidence batch) override { link_->Put(batch); }
  void OnBreak() override { prober_->OnBreak(); }
  void OnTick() override;
  // Copies all counters into stats_, on the clock thread.
  void Publish();

  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;

  // Made, used and destroyed on loop_'s sequence. The two ways to probe, what chooses between them,
  // the way to the aggregator, and the measurements.
  std::unique_ptr<UdpProber> udp_;
  std::unique_ptr<StreamProber> stream_;
  std::unique_ptr<ClockProber> prober_;
  std::unique_ptr<EvidenceLink> link_;
  std::unique_ptr<ClockCollector> collector_;
  uint64_t ticks_ = 0;

  mutable Mutex mutex_;
  Stats stats_ NT_GUARDED_BY(mutex_);
  bool flushing_ NT_GUARDED_BY(mutex_) = false;  // what was flushed is not in stats_ yet
  std::thread thread_;
};

}  // namespace neurontrace
