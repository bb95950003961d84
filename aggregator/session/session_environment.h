// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_quota.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Keeps captures, agents and workers across restarts of the aggregator. This and the other
// interfaces here are what the coordinator needs from the rest of the aggregator. It calls them on
// its sequence; implementations must not call back into it.
class SessionStorage {
 public:
  virtual ~SessionStorage() = default;

  // Writes the record of a capture; with `durable` it is synced on return. Fails with the store's
  // error.
  virtual absl::Status PutCapture(const CaptureRecord& record, bool durable) = 0;
  // Stores an agent that has connected or disconnected.
  virtual void RememberAgent(const KnownAgent& agent) = 0;
  // Stores a worker as its agent has just reported it.
  virtual void RememberWorker(const std::string& agent_id, const WorkerInfo& worker) = 0;
};

// A moment on one host's CLOCK_MONOTONIC_RAW.
struct MomentOnHost {
  uint64_t raw_ns = 0;
  uint64_t bound_ns = 0;  // largest possible distance from the requested moment
};

// Provides the reference time and converts it to the clocks of hosts.
class SessionClocks {
 public:
  virtual ~SessionClocks() = default;

  // Returns the reference time now.
  virtual uint64_t ReferenceNs() const = 0;
  // Converts a moment of the reference timescale to the clock of the agent's host; nullopt if
  // nothing is known about that clock.
  virtual std::optional<MomentOnHost> MomentOn(const AgentInfo& agent,
                                               uint64_t reference_ns) const = 0;
  // Starts to update the knowledge about clocks, because MomentOn is about to be called for all
  // hosts. Does not wait.
  virtual void RefreshSoon() = 0;
};

// Answers how much captures may store.
class StorageQuota {
 public:
  virtual ~StorageQuota() = default;

  // Returns how much a capture may store that selects workers of `jobs` and has stored `own_bytes`;
  // nullopt if it has not begun. Fails as neurontrace::Admit does.
  virtual absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec,
                                                 const std::set<std::string>& jobs,
                                                 std::optional<uint64_t> own_bytes) = 0;
  // Returns the bytes that the capture has stored.
  virtual uint64_t StoredBytes(const CaptureId& capture) const = 0;
  // Returns whether the store as a whole may grow.
  virtual bool HasRoom() const = 0;
};

}  // namespace neurontrace
