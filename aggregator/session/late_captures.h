// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "aggregator/session/capture_journal.h"
#include "aggregator/session/capture_session.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The captures that have ended without some of their agents, and stay open for what those still
// bring. One sequence.
class LateCaptures {
 public:
  // Keeps a capture that is open. Beyond limits::kLateCapturesPerAgentMax of one agent, and
  // limits::kLateCapturesMax of all, the oldest ones do not wait any longer.
  void Keep(std::unique_ptr<TrackedCapture> capture);
  // Forgets captures that wait for no agent any more, and writes what has changed.
  void Tick(const SessionTime& now, CaptureJournal& journal);
  // Forgets a capture that was deleted.
  void Forget(const CaptureId& capture) { captures_.erase(capture); }

  // Returns nullptr for a capture that is not here.
  TrackedCapture* Find(const CaptureId& capture) const;
  const TrackedCaptures& captures() const { return captures_; }

 private:
  TrackedCaptures captures_;  // oldest first: ids sort by time
};

}  // namespace neurontrace
