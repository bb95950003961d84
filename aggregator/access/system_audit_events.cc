// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/system_audit_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace neurontrace {
namespace {

// Returns how a capture ended, as the audit log names it.
std::string_view EndStateName(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "not begun";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

// Framework files are no workers of their own. Returns the number of workers that took part.
size_t WorkersOf(const CaptureRecord& record) {
  return std::ranges::count_if(record.workers,
                               [](const CaptureWorkerStatus& status) { return !status.framework; });
}

// Returns "1 worker" or "3 workers".
std::string Plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

// A start that failed has no capture, but it is recorded with its error.
AuditEntry StartedByRule(const std::string& rule, const CaptureSpec& spec,
                         const absl::StatusOr<CaptureRecord>& begun) {
  return {.action = "capture.start",
          .caller = "rule " + rule,
          .capture = begun.ok() ? begun->id.ToString() : "",
          .job = spec.selection.job,
          .detail = spec.cause,
          .outcome = begun.status()};
}

// The outcome is OK: that it had to be stopped is in the detail.
AuditEntry StoppedByQuota(const CaptureRecord& record, const std::string& why) {
  return {.action = "capture.stop",
          .caller = "quota",
          .capture = record.id.ToString(),
          .job = record.spec.selection.job,
          .detail = why};
}

// The caller is the aggregator, whoever stopped the capture.
AuditEntry EndedCapture(const CaptureRecord& record) {
  return {.action = "capture.end",
          .caller = "aggregator",
          .capture = record.id.ToString(),
          .job = record.spec.selection.job,
          .detail = fmt::format(
              "{}, {}, {}", EndStateName(record.state), Plural(WorkersOf(record), "worker"),
              Plural(record.warnings.size() + record.end_warnings.size(), "warning"))};
}

// Whole captures are counted in chunks, and trimmed ones in events, because that is what was
// deleted.
AuditEntry DeletedByRetention(const DeletedData& deleted) {
  return {
      .action = deleted.is_whole ? "capture.delete" : "capture.trim",
      .caller = "retention",
      .capture = deleted.capture.ToString(),
      .job = deleted.job,
      .detail = deleted.is_whole
                    ? fmt::format("{} chunks, {} bytes", deleted.chunks, deleted.bytes)
                    : fmt::format("the oldest {} events, {} bytes", deleted.events, deleted.bytes)};
}

AuditEntry ExportedByRule(const StandingExportStep& step) {
  return {.action = step.action,
          .caller = "standing export " + step.rule,
          .capture = step.capture.ToString(),
          .detail = step.where,
          .outcome = step.outcome};
}

}  // namespace neurontrace
