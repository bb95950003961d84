// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "aggregator/session/capture_journal.h"
#include "aggregator/session/capture_session.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The captures that have ended without some of their agents and stay open for what those still
// deliver. Used on the coordinator's sequence only.
class LateCaptures {
 public:
  // Keeps an open capture. Beyond limits::kLateCapturesPerAgentMax of one agent, or
  // limits::kLateCapturesMax of all, the oldest ones stop waiting.
  void Keep(std::unique_ptr<TrackedCapture> capture);
  // Forgets captures that no longer wait for any agent, and writes records that have changed.
  void Tick(const SessionTime& now, CaptureJournal& journal);
  // Forgets a capture that is being deleted.
  void Forget(const CaptureId& capture) { captures_.erase(capture); }

  // Returns nullptr for a capture that is not kept.
  TrackedCapture* Find(const CaptureId& capture) const;
  const TrackedCaptures& captures() const { return captures_; }

 private:
  TrackedCaptures captures_;  // oldest first, as ids sort by time
};

}  // namespace neurontrace
