// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {

// One Upload call to the aggregator. Abstract so tests play the aggregator. Everything happens on
// the agent's sequence; destroying it ends the call, and nothing is told any more.
class UploadStream {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnWritten() = 0;  // the next Write may follow
    virtual void OnAck(const v1::UploadAck& ack) = 0;
    virtual void OnClosed(const absl::Status& status) = 0;  // the last event
  };

  virtual ~UploadStream() = default;
  // One at a time; not from within a listener's OnClosed.
  virtual void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) = 0;
};

// Begins a call. The listener outlives the stream and hears nothing before this returns.
using UploadConnector = std::function<std::unique_ptr<UploadStream>(UploadStream::Listener&)>;

}  // namespace neurontrace
