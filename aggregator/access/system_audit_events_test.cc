// SPDX-License-Identifier: Apache-2.0
// What is written of what nobody called for.
#include "aggregator/access/system_audit_events.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

CaptureId SomeCaptureId() { return *CaptureId::FromBytes(std::string(CaptureId::kBytes, '\1')); }

CaptureRecord SomeCapture() {
  CaptureRecord record;
  record.id = SomeCaptureId();
  return record;
}

TEST(SystemAuditEvents, ARuleThatBeginsACaptureIsNamedWithItsCause) {
  CaptureRecord record = SomeCapture();
  record.spec.selection.job = "llama";
  record.spec.cause = "trigger slow: core 0 is slow";
  const AuditEntry begun = StartedByRule("slow", record.spec, record);
  EXPECT_EQ(begun.action, "capture.start");
  EXPECT_EQ(begun.caller, "rule slow");
  EXPECT_EQ(begun.capture, record.id.ToString());
  EXPECT_EQ(begun.job, "llama");
  EXPECT_EQ(begun.detail, "trigger slow: core 0 is slow");
  EXPECT_TRUE(begun.outcome.ok());
  const AuditEntry failed =
      StartedByRule("slow", record.spec, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(failed.capture, "");
  EXPECT_EQ(failed.outcome, absl::ResourceExhaustedError("full"));
}

TEST(SystemAuditEvents, RecordsOutcome) {
  CaptureRecord record = SomeCapture();
  record.state = CaptureState::kIncomplete;
  record.workers.resize(3);
  record.workers[2].framework = true;
  record.warnings = {"a"};
  record.end_warnings = {"b"};
  EXPECT_EQ(EndedCapture(record).action, "capture.end");
  EXPECT_EQ(EndedCapture(record).detail, "incomplete, 2 workers, 2 warnings");
  record.state = CaptureState::kNotBegun;
  record.workers.erase(record.workers.begin());
  record.warnings.clear();
  EXPECT_EQ(EndedCapture(record).detail, "not begun, 1 worker, 1 warning");
  const AuditEntry stopped = StoppedByQuota(record, "the store is full");
  EXPECT_EQ(stopped.action, "capture.stop");
  EXPECT_EQ(stopped.caller, "quota");
  EXPECT_EQ(stopped.detail, "the store is full");
}

TEST(SystemAuditEvents, RecordsRetentionDeletes) {
  const CaptureId id = SomeCaptureId();
  const AuditEntry whole =
      DeletedByRetention({.capture = id, .is_whole = true, .chunks = 3, .bytes = 4'000});
  EXPECT_EQ(whole.action, "capture.delete");
  EXPECT_EQ(whole.caller, "retention");
  EXPECT_EQ(whole.detail, "3 chunks, 4000 bytes");
  const AuditEntry part =
      DeletedByRetention({.capture = id, .job = "llama", .events = 20, .bytes = 300});
  EXPECT_EQ(part.action, "capture.trim");
  EXPECT_EQ(part.job, "llama");
  EXPECT_EQ(part.detail, "the oldest 20 events, 300 bytes");
}

TEST(SystemAuditEvents, AStandingExportIsNamed) {
  const AuditEntry entry =
      ExportedByRule({.action = "export",
                      .rule = "all",
                      .capture = SomeCaptureId(),
                      .where = "/out",
                      .outcome = absl::NotFoundError("the bucket is not there")});
  EXPECT_EQ(entry.caller, "standing export all");
  EXPECT_EQ(entry.capture, SomeCaptureId().ToString());
  EXPECT_EQ(entry.detail, "/out");
  EXPECT_TRUE(absl::IsNotFound(entry.outcome));
}

}  // namespace
}  // namespace neurontrace
