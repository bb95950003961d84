// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/late_captures.h"

#include <cassert>
#include <iterator>
#include <utility>
#include <vector>

#include "lib/trace/limits.h"

namespace neurontrace {

// The limits bound what agents that never return cost. Given-up captures are removed by Tick, once
// their records are stored.
void LateCaptures::Keep(std::unique_ptr<TrackedCapture> capture) {
  assert(capture != nullptr && capture->session.IsOpen());
  const CaptureRecord& record = capture->session.record();
  for (const CaptureAgentPart& part : record.agents) {
    if (!capture->session.Awaits(part.agent_id)) continue;
    std::vector<TrackedCapture*> waiting;
    for (const auto& [id, other] : captures_) {
      if (other->session.Awaits(part.agent_id)) waiting.push_back(other.get());
    }
    if (waiting.size() < limits::kLateCapturesPerAgentMax) continue;
    waiting.front()->session.GiveUpOn(part.agent_id);
    waiting.front()->unsaved = true;
  }
  // `record` is part of the capture that is moved next.
  const CaptureId id = record.id;
  captures_[id] = std::move(capture);
  // Those that were given up before stay until the next Tick.
  std::vector<TrackedCapture*> open;
  for (const auto& [other_id, other] : captures_) {
    if (other->session.IsOpen()) open.push_back(other.get());
  }
  if (open.size() <= limits::kLateCapturesMax) return;
  assert(open.size() == limits::kLateCapturesMax + 1);
  open.front()->session.GiveUpOnAll();
  open.front()->unsaved = true;
}

void LateCaptures::Tick(const SessionTime& now, CaptureJournal& journal) {
  for (auto it = captures_.begin(); it != captures_.end();) {
    TrackedCapture& capture = *it->second;
    if (capture.session.IsOverdue(now)) {
      capture.session.GiveUpOnAll();
      capture.unsaved = true;
    }
    const bool is_over = !capture.session.IsOpen();
    const bool is_due = now.monotonic_ns >= capture.saved_ns + CaptureJournal::kSaveIntervalNs;
    // A capture is only forgotten once its final record is stored.
    if (capture.unsaved && (is_over || is_due)) journal.Save(capture, is_over);
    it = is_over && !capture.unsaved ? captures_.erase(it) : std::next(it);
  }
}

TrackedCapture* LateCaptures::Find(const CaptureId& capture) const {
  const auto it = captures_.find(capture);
  return it == captures_.end() ? nullptr : it->second.get();
}

}  // namespace neurontrace
