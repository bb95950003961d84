// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "agent/clock/probe_stream.h"
#include "base/task_runner.h"
#include "base/weak_tasks.h"
#include "clock/host_clocks.h"
#include "trace/clock_evidence.h"

namespace neurontrace {

// Asks an aggregator for the time in a gRPC call of its own, one question after the answer to the
// other, so that none waits behind another. Wider than UDP, as neither end knows when the kernel
// had a packet. Lives on the sequence of its runner, which outlives it.
class StreamProber {
 public:
  struct Counters {
    uint64_t calls = 0;
    uint64_t sent = 0;
    uint64_t answered = 0;
    uint64_t refused = 0;  // answers that make no sense
  };
  using OnExchange = std::function<void(const ClockExchange&)>;

  StreamProber(ProbeConnector connector, const HostClocks& clocks, TaskRunner& runner,
               OnExchange on_exchange);
  ~StreamProber();

  // Asks so many times, in a call that is begun where there is none. What is still to be asked when
  // more comes is not asked any more.
  void Send(int probes);
  void Disconnect();
  bool connected() const { return stream_ != nullptr; }

  const Counters& counters() const { return counters_; }

 private:
  void Pump();
  void OnReply(const ProbeReply& reply);
  void OnClosed();

  const ProbeConnector connector_;
  const HostClocks& clocks_;
  TaskRunner& runner_;
  const OnExchange on_exchange_;
  std::unique_ptr<ProbeStream> stream_;
  int to_send_ = 0;
  bool writing_ = false;
  uint64_t sequence_ = 0;     // of the last question, over all calls
  bool answered_ = true;      // it is
  uint64_t send_raw_ns_ = 0;  // when it was asked
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
