// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "agent/clock/exchange_sink.h"
#include "agent/clock/probe_stream.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/clock/host_clocks.h"

namespace neurontrace {

// Probes the aggregator's time in a gRPC call of its own, one question after the answer to the
// previous one, so that none waits behind another. Its intervals are wider than those over UDP,
// since neither end sees kernel timestamps. Lives on the sequence of `runner`; connector's objects,
// `clocks` and `runner` outlive it.
class StreamProber final : private ProbeStream::Listener {
 public:
  struct Counters {
    // gRPC calls started, and questions asked in them.
    uint64_t calls = 0;
    uint64_t sent = 0;
    uint64_t answered = 0;
    // Answers that belong to no open question, or whose times contradict each other.
    uint64_t refused = 0;
  };

  // `exchanges` receives each answered question, and outlives this.
  StreamProber(ProbeConnector connector, const HostClocks& clocks, TaskRunner& runner,
               ExchangeSink& exchanges);
  ~StreamProber() override;

  // Asks `probes` times, in a call that is started if none is open. Questions that are still to be
  // asked from an earlier Send are replaced, not added. An answer later than a second is ignored.
  void Send(int probes);
  // Ends the call. Send starts another one.
  void Disconnect();
  // Returns true from the Send that starts a call until the call is destroyed.
  bool connected() const { return stream_ != nullptr; }

  const Counters& counters() const { return counters_; }

 private:
  // Sends the next question, unless one is being written or unanswered.
  void Pump();
  // ProbeStream::Listener
  void OnReply(const ProbeReply& reply) override;
  void OnWritten() override;
  void OnClosed(const absl::Status& status) override;

  const ProbeConnector connector_;
  const HostClocks& clocks_;
  TaskRunner& runner_;
  ExchangeSink& exchanges_;
  std::unique_ptr<ProbeStream> stream_;
  // Questions of the last Send that are still to be asked.
  int to_send_ = 0;
  // True from a Send of the stream until its OnWritten.
  bool writing_ = false;
  // The number of the last question; it grows over all calls.
  uint64_t sequence_ = 0;
  // False while the last question waits for its answer.
  bool answered_ = true;
  // When the last question was asked, in ns of raw.
  uint64_t send_raw_ns_ = 0;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
