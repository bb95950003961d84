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

// One batch of evidence on its way.
struct EvidenceBatch {
  uint64_t number = 0;       // from 1, rising
  uint64_t age_ns = 0;       // how long ago the last of it was measured
  std::string observations;  // lib/trace/clock_evidence_codec.h
};

// One Report call of the ClockGateway. Abstract so tests play the aggregator. Everything happens on
// one sequence; destroying it ends the call, and nothing is told any more.
class EvidenceStream {
 public:
  struct Events {
    // First, once: how to probe over UDP, or that this is not to be had.
    std::function<void(const std::optional<ProbeAccess>&)> on_access;
    std::function<void(uint64_t number)> on_receipt;     // every batch up to this one is stored
    std::function<void()> on_written;                    // the next Send may follow
    std::function<void(const absl::Status&)> on_closed;  // the last event
  };
  virtual ~EvidenceStream() = default;
  virtual void Send(const EvidenceBatch& batch) = 0;  // one at a time, after on_access
};

// Begins a call; nothing is told before this returns.
using EvidenceConnector = std::function<std::unique_ptr<EvidenceStream>(EvidenceStream::Events)>;

}  // namespace neurontrace
