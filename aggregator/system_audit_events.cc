// SPDX-License-Identifier: Apache-2.0
#include "aggregator/system_audit_events.h"

#include <fmt/format.h>

#include <string_view>

#include "aggregator/session/capture_arming.h"

namespace neurontrace {
namespace {

std::string_view WordOfEnd(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "not begun";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

std::string Plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

AuditEntry BegunByRule(const std::string& rule, const CaptureSpec& spec,
                       const absl::StatusOr<CaptureRecord>& begun) {
  return {.action = "capture.start",
          .caller = "rule " + rule,
          .capture = begun.ok() ? begun->id.ToString() : "",
          .job = spec.job,
          .detail = spec.cause,
          .outcome = begun.status()};
}

AuditEntry StoppedByQuota(const CaptureRecord& record, const std::string& why) {
  return {.action = "capture.stop",
          .caller = "quota",
          .capture = record.id.ToString(),
          .job = record.spec.job,
          .detail = why};
}

AuditEntry EndedCapture(const CaptureRecord& record) {
  return {.action = "capture.end",
          .caller = "aggregator",
          .capture = record.id.ToString(),
          .job = record.spec.job,
          .detail = fmt::format(
              "{}, {}, {}", WordOfEnd(record.state), Plural(Tally(record).selected, "worker"),
              Plural(record.warnings.size() + record.end_warnings.size(), "warning"))};
}

AuditEntry DeletedByRetention(const Expired& expired) {
  return {
      .action = expired.is_whole ? "capture.delete" : "capture.trim",
      .caller = "retention",
      .capture = expired.capture.ToString(),
      .job = expired.job,
      .detail = expired.is_whole
                    ? fmt::format("{} chunks, {} bytes", expired.chunks, expired.bytes)
                    : fmt::format("the oldest {} events, {} bytes", expired.events, expired.bytes)};
}

AuditEntry ExportedByRule(std::string_view action, const StandingQueue::Task& task,
                          const std::string& where, const absl::Status& outcome) {
  return {.action = action,
          .caller = "standing export " + task.rule->name,
          .capture = task.capture.ToString(),
          .detail = where,
          .outcome = outcome};
}

}  // namespace neurontrace
