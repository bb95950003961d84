// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/session/capture_session.h"
#include "aggregator/session/execution_start.h"
#include "aggregator/session/execution_stop_policy.h"
#include "aggregator/session/quota_stop_policy.h"
#include "aggregator/session/session_environment.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// A capture that is running or awaits late agents, with the policies that decide about it. A plain
// value.
struct TrackedCapture {
  explicit TrackedCapture(CaptureSession&& state) : session(std::move(state)) {}

  CaptureSession session;
  ExecutionStart execution_start;
  ExecutionStopPolicy execution_stop;
  QuotaStopPolicy quota_stop;

  // How the session's record differs from the stored one.
  bool unsaved = false;
  bool has_news = false;         // more than counters changed: to be written soon
  bool must_be_durable = false;  // to be synced before agents act on it
  uint64_t saved_ns = 0;         // monotonic; when it was last written or tried
  uint64_t retry_ns = 0;         // monotonic; a decision that could not be stored waits until then
};

using TrackedCaptures = std::map<CaptureId, std::unique_ptr<TrackedCapture>>;

// Writes the records of captures and tells observers about changes. On the coordinator's sequence,
// which waits while a record is written.
class CaptureJournal {
 public:
  // How often counters of workers and the deliveries of late agents are written.
  static constexpr uint64_t kSaveIntervalNs = 1'000'000'000;

  // Both must outlive this.
  CaptureJournal(const Clock& clock, SessionStorage& storage) : clock_(clock), storage_(storage) {}

  // Adds an observer, which must outlive this.
  void AddObserver(CaptureObserver& observer) { observers_.push_back(&observer); }

  // Makes `next` the state of the capture after its record is synced. If that fails, returns the
  // storage's error and leaves the capture unchanged, so that no agent gets an order that a restart
  // would not know.
  absl::Status Commit(TrackedCapture& capture, CaptureSession next);
  // Does the same for a change that people make to the name, the star or the tags: no decision, so
  // neither an unsaved end nor the next decision is affected if the record cannot be written.
  absl::Status CommitUpdate(TrackedCapture& capture, CaptureSession next);
  // Writes the record and reports the change. A record that cannot be written gets a warning and
  // stays unsaved.
  void Save(TrackedCapture& capture, bool durable);
  // Reports a change that should be stored soon. Writes the record unless it was just written, so
  // that a thousand workers that change in a row cause few writes. Writes nothing while the capture
  // arms, because a restart asks all agents again.
  void SaveSoon(TrackedCapture& capture);
  // Writes a record that has been unsaved for long enough.
  void SaveIfDue(TrackedCapture& capture, uint64_t now_monotonic_ns);
  // Reports a change that need not be stored.
  void ReportChanged(const CaptureRecord& record);

  // Call the observers' functions of corresponding names.
  void ReportArmed(const ArmingOutcome& outcome);
  void ReportRefused(CaptureObstacle obstacle, uint32_t workers);
  void ReportStoppedByQuota(const CaptureRecord& record, const std::string& why);

  // Returns how long the last successful write of Commit took.
  uint64_t write_ns() const { return write_ns_; }

 private:
  absl::Status Put(const CaptureRecord& record, bool durable);

  const Clock& clock_;
  SessionStorage& storage_;
  std::vector<CaptureObserver*> observers_;
  uint64_t write_ns_ = 0;
};

}  // namespace neurontrace
