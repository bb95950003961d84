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

// Counts probes (docs/operator/metrics.md). The registry owns the metrics. Any thread.
struct ProbeMetrics {
  explicit ProbeMetrics(prometheus::Registry& registry);

  prometheus::Counter& answered;
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
  // All of them must outlive this.
  struct Deps {
    const HostClocks& clocks;
    const ReferenceTimescale& timescale;
    ProbeKeys& keys;
    ProbeMetrics& metrics;
  };

  // `host` as in HOST:PORT, an IPv6 address possibly in brackets; port 0: any free one. Fails with
  // FAILED_PRECONDITION, and says what to do, if it cannot bind.
  static absl::StatusOr<std::unique_ptr<ProbeResponder>> Start(const std::string& host,
                                                               uint16_t port, const Deps& deps);
  ~ProbeResponder();
  ProbeResponder(const ProbeResponder&) = delete;
  ProbeResponder& operator=(const ProbeResponder&) = delete;

  // The port that is bound.
  uint16_t port() const { return port_; }

 private:
  ProbeResponder(const Deps& deps, UniqueFd socket, UniqueFd stop, uint16_t port);
  void Run();

  const Deps deps_;
  const UniqueFd socket_;
  const UniqueFd stop_;  // an eventfd, readable when it is time to end
  const uint16_t port_;
  std::thread thread_;
};

}  // namespace neurontrace
