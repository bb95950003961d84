// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace neurontrace {

// What comes back on a probe stream: by the reference timescale, and by raw when it was there.
struct ProbeReply {
  uint64_t sequence = 0;
  uint64_t reference_receive_ns = 0;
  uint64_t reference_send_ns = 0;
  uint32_t reference_epoch = 0;
  uint64_t receive_raw_ns = 0;
};

// One Probe call to the aggregator, for where its UDP port is not reached. Abstract so tests play
// the aggregator. Everything happens on one sequence; destroying it ends the call, and nothing is
// told any more.
class ProbeStream {
 public:
  struct Events {
    std::function<void(const ProbeReply&)> on_reply;
    std::function<void()> on_written;                    // the next Send may follow
    std::function<void(const absl::Status&)> on_closed;  // the last event
  };
  virtual ~ProbeStream() = default;
  virtual void Send(uint64_t sequence) = 0;  // one at a time
};

// Begins a call; nothing is told before this returns.
using ProbeConnector = std::function<std::unique_ptr<ProbeStream>(ProbeStream::Events)>;

}  // namespace neurontrace
