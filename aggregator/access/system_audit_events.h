// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"

// What the aggregator does without being called, as lines of the audit log: the caller is what made
// it do so. Pure.
namespace neurontrace {

// Describes that "rule NAME" started the capture, or could not. `begun` is the result of starting
// it: its error becomes the outcome.
AuditEntry StartedByRule(const std::string& rule, const CaptureSpec& spec,
                         const absl::StatusOr<CaptureRecord>& begun);
// Describes that "quota" stopped the capture. `why` names the quota and is shown as it is.
AuditEntry StoppedByQuota(const CaptureRecord& record, const std::string& why);
// Describes the end of a capture, whoever started it. Reports the state, the number of workers and
// the number of warnings.
AuditEntry EndedCapture(const CaptureRecord& record);

// Data of a capture that retention deleted. Filled in by retention.
struct DeletedData {
  CaptureId capture;
  std::string job;
  bool is_whole = false;  // the capture with everything; otherwise its oldest events
  uint64_t events = 0;    // if only the oldest events
  uint64_t chunks = 0;    // if the whole capture
  uint64_t bytes = 0;
};
// Describes that "retention" deleted a capture or its oldest events. The action is "capture.delete"
// or "capture.trim".
AuditEntry DeletedByRetention(const DeletedData& deleted);

// One step of a standing export. Reported at the begin and at the end, as an export can take long.
struct StandingExportStep {
  std::string_view action;  // "export.begin", or "export" at the end
  std::string rule;
  CaptureId capture;
  std::string where;  // the requested destination, or the written path
  absl::Status outcome;
};
// Describes that "standing export NAME" starts or has ended. The outcome is that of the step.
AuditEntry ExportedByRule(const StandingExportStep& step);

}  // namespace neurontrace
