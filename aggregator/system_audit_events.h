// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/deliver/standing_queue.h"
#include "aggregator/retention/capture_retention.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"

// What the aggregator does without being called, as lines of the audit log: the caller is what made
// it do so. Pure.
namespace neurontrace {

// "rule NAME" began the capture, or could not.
AuditEntry BegunByRule(const std::string& rule, const CaptureSpec& spec,
                       const absl::StatusOr<CaptureRecord>& begun);
// "quota" stopped it.
AuditEntry StoppedByQuota(const CaptureRecord& record, const std::string& why);
// It is over, whoever began it.
AuditEntry EndedCapture(const CaptureRecord& record);
// "retention" deleted it, or what was too old or too much of it.
AuditEntry DeletedByRetention(const Expired& expired);
// "standing export NAME" begins, or has ended. `where`: what was asked for, or written.
AuditEntry ExportedByRule(std::string_view action, const StandingQueue::Task& task,
                          const std::string& where, const absl::Status& outcome);

}  // namespace neurontrace
