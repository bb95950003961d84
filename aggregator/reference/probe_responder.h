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

// What the responder counts; docs/operator/metrics.md describes it. The registry owns them. Any
// thread.
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

// Answers clock probes over UDP, on a thread of its own from Start to its end. A question is
// received when the kernel received it; an answer is sent to where its question came from, from the
// address that the question went to.
// thread: probes: answers clock probes over UDP, and does nothing else
class ProbeResponder {
 public:
  struct Deps {
    const HostClocks& clocks;
    const ReferenceTimescale& timescale;
    ProbeKeys& keys;
    ProbeMetrics& metrics;
  };

  // `host` as in HOST:PORT (an IPv6 address may be in brackets), port 0: any free one. What is
  // in `deps` outlives this. FAILED_PRECONDITION, with what to do, where nothing can be bound.
  static absl::StatusOr<std::unique_ptr<ProbeResponder>> Start(const std::string& host,
                                                               uint16_t port, const Deps& deps);
  ~ProbeResponder();
  ProbeResponder(const ProbeResponder&) = delete;
  ProbeResponder& operator=(const ProbeResponder&) = delete;

  uint16_t port() const { return port_; }

 private:
  ProbeResponder(const Deps& deps, UniqueFd socket, UniqueFd stop, uint16_t port);
  void Run();

  const Deps deps_;
  const UniqueFd socket_;
  const UniqueFd stop_;  // readable when it is time to end
  const uint16_t port_;
  std::thread thread_;
};

}  // namespace neurontrace
