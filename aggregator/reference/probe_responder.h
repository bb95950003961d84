// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/reference/reference_timescale.h"
#include "lib/base/unique_fd.h"
#include "lib/clock/host_clocks.h"

namespace neurontrace {

// Counts probes (docs/operator/metrics.md). The registry owns the metrics. Any thread. Each packet
// is counted at most once: as answered, as refused for one reason, or as not sent.
struct ProbeMetrics {
  explicit ProbeMetrics(prometheus::Registry& registry);

  prometheus::Counter& answered;
  // Counted in addition to the result: such an answer has a wider bound.
  prometheus::Counter& without_kernel_stamp;
  prometheus::Counter& refused_malformed;
  prometheus::Counter& refused_unknown_key;
  prometheus::Counter& refused_forged;
  prometheus::Counter& refused_replayed;
  prometheus::Counter& refused_too_many;
  prometheus::Counter& send_errors;
};

// Answers clock probes over UDP on a thread of its own, from Start until its destruction. A
// question counts as received when the kernel received it. The answer goes to where the question
// came from, from the address that the question was sent to.
// thread: probes: answers clock probes over UDP, and does nothing else
class ProbeResponder {
 public:
  // All of them must outlive this. `clocks` is the one that `timescale` is made of.
  struct Deps {
    const HostClocks& clocks;
    const ReferenceTimescale& timescale;
    ProbeKeys& keys;
    ProbeMetrics& metrics;
  };

  // Binds to `host`, as in HOST:PORT, an IPv6 address possibly in brackets; port 0: any free one.
  // The host "0.0.0.0" means every address of both families, if the system has IPv6. Fails with
  // FAILED_PRECONDITION, and says what to do, if it cannot bind.
  static absl::StatusOr<std::unique_ptr<ProbeResponder>> Start(const std::string& host,
                                                               uint16_t port, const Deps& deps);
  // Ends the thread within a moment. Packets that are waiting are not answered.
  ~ProbeResponder();
  ProbeResponder(const ProbeResponder&) = delete;
  ProbeResponder& operator=(const ProbeResponder&) = delete;

  // Returns the port that is bound. Differs from the requested one if that was 0.
  uint16_t port() const { return port_; }

 private:
  // Takes over the bound socket and the eventfd; Start starts the thread.
  ProbeResponder(const Deps& deps, UniqueFd socket, UniqueFd stop, uint16_t port);
  // Waits for packets and for the end. Called on thread_.
  void Run();

  const Deps deps_;
  const UniqueFd socket_;
  const UniqueFd stop_;  // an eventfd, readable when it is time to end
  // The port is in host byte order.
  const uint16_t port_;
  // Joined by the destructor.
  std::thread thread_;
};

}  // namespace neurontrace
