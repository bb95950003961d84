// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_audit.h"

#include <spdlog/spdlog.h>

#include <string_view>

#include "aggregator/access/system_audit_events.h"

namespace neurontrace {
namespace {

// Returns how a capture ended, for a sentence of the log.
std::string_view EndName(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "before it began,";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

}  // namespace

void CaptureAudit::OnCaptureEnded(const CaptureRecord& record) {
  audit_.Write(EndedCapture(record));
  SPDLOG_INFO("capture {} ended {} with {} warnings", record.id.ToString(), EndName(record.state),
              record.warnings.size() + record.end_warnings.size());
}

void CaptureAudit::OnCaptureStoppedByQuota(const CaptureRecord& record, const std::string& why) {
  audit_.Write(StoppedByQuota(record, why));
}

}  // namespace neurontrace
