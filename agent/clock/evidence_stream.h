// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/clock/probe_access.h"

namespace neurontrace {

// One batch of evidence as it is sent.
struct EvidenceBatch {
  uint64_t number = 0;       // from 1, rising
  uint64_t age_ns = 0;       // how long ago the last of it was measured
  std::string observations;  // lib/trace/clock_evidence_codec.h
};

// One Report call of the ClockGateway (proto/neurontrace/v1/clock_gateway.proto). Abstract so that
// tests play the aggregator. All calls and events happen on one sequence; destroying the stream
// ends the call, and no event follows.
class EvidenceStream {
 public:
  // Receives the events of the call.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The first event, once: how to probe over UDP, or nothing if that is not available.
    virtual void OnAccess(const std::optional<ProbeAccess>& access) = 0;
    // Every batch up to this one is stored.
    virtual void OnReceipt(uint64_t number) = 0;
    // The next Send may follow.
    virtual void OnWritten() = 0;
    // The last event. Must not destroy the stream.
    virtual void OnClosed(const absl::Status& status) = 0;
  };
  virtual ~EvidenceStream() = default;
  // Sends a batch. Called after OnAccess, and again only after OnWritten.
  virtual void Send(const EvidenceBatch& batch) = 0;
};

// Starts a call; no event occurs before it returns. The listener outlives the stream.
using EvidenceConnector = std::function<std::unique_ptr<EvidenceStream>(EvidenceStream::Listener&)>;

}  // namespace neurontrace
