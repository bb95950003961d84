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
  struct Events {
    // The first event, once: how to probe over UDP, or nothing if that is not available.
    std::function<void(const std::optional<ProbeAccess>&)> on_access;
    std::function<void(uint64_t number)> on_receipt;     // every batch up to this one is stored
    std::function<void()> on_written;                    // the next Send may follow
    std::function<void(const absl::Status&)> on_closed;  // the last event
  };
  virtual ~EvidenceStream() = default;
  // Sends a batch. Called after on_access, and again only after on_written.
  virtual void Send(const EvidenceBatch& batch) = 0;
};

// Starts a call; no event occurs before it returns.
using EvidenceConnector = std::function<std::unique_ptr<EvidenceStream>(EvidenceStream::Events)>;

}  // namespace neurontrace
