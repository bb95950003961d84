// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/session/agent_registry.h"
#include "aggregator/storage/store_quota.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// The room that a capture like the previewed one would find.
struct PreviewRoom {
  // Free bytes of the store's disk; 0: unknown.
  uint64_t store_free_bytes = 0;
  uint64_t quota_left_bytes = UINT64_MAX;  // of the smallest quota that applies; UINT64_MAX: none
  std::vector<std::string> objections;     // why it would be refused as requested
};

// Finds the room for a capture like the previewed one. Does not fail: a refusal becomes an
// objection. On the coordinator's sequence, which owns `registry`.
PreviewRoom FindPreviewRoom(StoreQuota& quota, const AgentRegistry& registry,
                            const CaptureRecord& preview);

// Returns what an ended preview predicts: rates from what its workers counted and, if the capture
// has a duration, how much that becomes and whether it fits. Pure.
v1::CapturePreview ToPreview(const CaptureRecord& record, const PreviewRoom& room);

}  // namespace neurontrace
