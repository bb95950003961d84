// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {

// One Upload call to the aggregator (proto/neurontrace/v1). Abstract so that tests play the
// aggregator. All calls and events happen on the agent's sequence; destroying the stream ends the
// call, and no event follows. The Uploader owns it and is its only listener. grpc_streams.h has the
// implementation.
class UploadStream {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnWritten() = 0;  // the next Write may follow
    // An answer about one stream, as the aggregator sent it.
    virtual void OnAck(const v1::UploadAck& ack) = 0;
    virtual void OnClosed(const absl::Status& status) = 0;  // the last event
  };

  virtual ~UploadStream() = default;
  // Sends one chunk. To be called again only after OnWritten, and not from within OnClosed. Holds
  // the envelope as long as it needs it. Errors reach the listener as OnClosed.
  virtual void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) = 0;
};

// Starts a call. The listener outlives the stream and receives nothing before this returns.
using UploadConnector = std::function<std::unique_ptr<UploadStream>(UploadStream::Listener&)>;

}  // namespace neurontrace
