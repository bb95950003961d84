// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_journal.h"

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/capture_limits.h"

namespace neurontrace {

// Writes one record. Fails with the storage's error.
absl::Status CaptureJournal::Put(const CaptureRecord& record, bool durable) {
  absl::Status status = storage_.PutCapture(record, durable);
  // An end counts once a restart would know it; a later one repeats it with a late agent's changes.
  if (status.ok() && durable && HasEnded(record.state)) {
    for (CaptureObserver* const observer : observers_) observer->OnCaptureEnded(record);
  }
  return status;
}

absl::Status CaptureJournal::Commit(TrackedCapture& capture, CaptureSession next) {
  assert(next.record().id == capture.session.record().id);
  const uint64_t before_ns = clock_.MonotonicNs();
  absl::Status status = Put(next.record(), /*durable=*/true);
  const uint64_t now_ns = clock_.MonotonicNs();
  // The session stays as it was, so the caller may not tell agents anything. `retry_ns` keeps Tick
  // from trying again at once.
  if (!status.ok()) {
    capture.unsaved = true;
    capture.retry_ns = now_ns + kSaveIntervalNs;
    return status;
  }
  write_ns_ = now_ns - before_ns;
  capture.session = std::move(next);
  capture.unsaved = capture.has_news = capture.must_be_durable = false;
  capture.saved_ns = now_ns;
  ReportChanged(capture.session.record());
  return absl::OkStatus();
}

// Does not use Put, which would report the end of an ended capture again: its exports would be made
// again for every tag. What else is unsaved stays so, because its own save reports it.
absl::Status CaptureJournal::CommitUpdate(TrackedCapture& capture, CaptureSession next) {
  assert(next.record().id == capture.session.record().id);
  RETURN_IF_ERROR(storage_.PutCapture(next.record(), /*durable=*/true));
  capture.session = std::move(next);
  ReportChanged(capture.session.record());
  return absl::OkStatus();
}

void CaptureJournal::Save(TrackedCapture& capture, bool durable) {
  const absl::Status status = Put(capture.session.record(), durable || capture.must_be_durable);
  capture.unsaved = !status.ok();
  if (status.ok()) capture.must_be_durable = capture.has_news = false;
  // Also after a failure, which is therefore not retried on every tick.
  capture.saved_ns = clock_.MonotonicNs();
  if (!status.ok()) {
    capture.session.Warn(fmt::format("its record could not be written and will be retried: {}",
                                     std::string(status.message())));
  }
  ReportChanged(capture.session.record());
}

// A fleet that arms sends thousands of reports within a second. None of them has to survive a
// restart, after which all agents are asked again.
void CaptureJournal::SaveSoon(TrackedCapture& capture) {
  capture.unsaved = capture.has_news = true;
  if (capture.session.state() != CaptureState::kArming &&
      clock_.MonotonicNs() >= capture.saved_ns + limits::kRecordSaveNs) {
    Save(capture, /*durable=*/false);
  } else {
    ReportChanged(capture.session.record());
  }
}

void CaptureJournal::SaveIfDue(TrackedCapture& capture, uint64_t now_monotonic_ns) {
  const uint64_t interval_ns = capture.has_news ? limits::kRecordSaveNs : kSaveIntervalNs;
  if (!capture.unsaved || now_monotonic_ns < capture.saved_ns + interval_ns) return;
  // A record that has ended must be on the disk before the capture is forgotten.
  Save(capture, capture.session.ended());
}

void CaptureJournal::ReportChanged(const CaptureRecord& record) {
  for (CaptureObserver* const observer : observers_) observer->OnCaptureChanged(record);
}

void CaptureJournal::ReportArmed(const ArmingOutcome& outcome) {
  for (CaptureObserver* const observer : observers_) observer->OnCaptureArmed(outcome);
}

void CaptureJournal::ReportRefused(CaptureObstacle obstacle, uint32_t workers) {
  for (CaptureObserver* const observer : observers_) observer->OnWorkersRefused(obstacle, workers);
}

void CaptureJournal::ReportStoppedByQuota(const CaptureRecord& record, const std::string& why) {
  for (CaptureObserver* const observer : observers_) observer->OnCaptureStoppedByQuota(record, why);
}

}  // namespace neurontrace
