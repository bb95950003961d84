// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Values of the families `captures`, `agents` and `workers`, as StoredCapture, StoredAgent and
// StoredWorker messages. Decoding checks every field and fails with DATA_LOSS for anything that
// encoding does not write. Pure functions, any thread.
std::string EncodeCaptureRecord(const CaptureRecord& record);
absl::StatusOr<CaptureRecord> DecodeCaptureRecord(const CaptureId& id, std::string_view value);

// An agent that has connected at some time. Times are ns of CLOCK_REALTIME.
struct AgentRecord {
  AgentInfo info;
  uint64_t first_seen_realtime_ns = 0;
  uint64_t last_seen_realtime_ns = 0;
  friend bool operator==(const AgentRecord&, const AgentRecord&) = default;
};
// A worker that an agent has reported. What only its agent knows while it is connected, event_types
// and tap_capture, is not stored.
struct WorkerRecord {
  WorkerInfo info;
  std::string agent_id;
  uint64_t first_seen_realtime_ns = 0;
  uint64_t last_seen_realtime_ns = 0;
  friend bool operator==(const WorkerRecord&, const WorkerRecord&) = default;
};

std::string EncodeAgentRecord(const AgentRecord& record);
absl::StatusOr<AgentRecord> DecodeAgentRecord(std::string_view value);
std::string EncodeWorkerRecord(const WorkerRecord& record);
absl::StatusOr<WorkerRecord> DecodeWorkerRecord(std::string_view value);

}  // namespace neurontrace
