// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace neurontrace {

// An answer: two times of the aggregator's reference timescale, and when it arrived by raw, in ns.
struct ProbeReply {
  // The number of the question that is answered.
  uint64_t sequence = 0;
  // When the aggregator received the question and sent the answer.
  uint64_t reference_receive_ns = 0;
  uint64_t reference_send_ns = 0;
  uint32_t reference_epoch = 0;
  uint64_t receive_raw_ns = 0;
};

// One Ask call of the ClockGateway, used where the aggregator's UDP port is not reached. Abstract
// so that tests play the aggregator. All calls and events happen on one sequence; destroying the
// stream ends the call, and no event follows.
class ProbeStream {
 public:
  // Receives the events of the call.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnReply(const ProbeReply& reply) = 0;
    // The next Send may follow.
    virtual void OnWritten() = 0;
    // The last event. Must not destroy the stream.
    virtual void OnClosed(const absl::Status& status) = 0;
  };
  virtual ~ProbeStream() = default;
  // Asks a question. Called again only after OnWritten.
  virtual void Send(uint64_t sequence) = 0;
};

// Starts a call; no event occurs before it returns. The listener outlives the stream.
using ProbeConnector = std::function<std::unique_ptr<ProbeStream>(ProbeStream::Listener&)>;

}  // namespace neurontrace
