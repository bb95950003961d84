// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// What the session knows of a worker in a watch. A plain value.
struct WorkerView {
  std::string job;
  // Everything that its agent has read of it is stored, so that silence is its own.
  bool is_stored = false;
  // Monotonic; when its agent was last heard from. 0: it is not connected.
  uint64_t last_seen_ns = 0;
  bool is_suspended = false;   // another capture records it
  bool has_ended = false;      // its process has ended …
  bool ended_orderly = false;  // … and had closed the runtime, or exited
  // Which calls its capture selects.
  bool records_tensor_calls = true;
  bool records_allocations = true;
};

// The workers of the watches that record now, by capture. A plain value, made on the coordinator's
// sequence about once a second.
using FleetView = std::map<CaptureId, absl::flat_hash_map<WorkerIdentity, WorkerView>>;

}  // namespace neurontrace
