// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// Returns whether the caller may learn about another capture with this spec; an empty function
// admits all.
using CanName = std::function<bool(const CaptureSpec&)>;

// What a requested capture has to be compatible with.
struct CaptureContext {
  const AgentRegistry& registry;
  std::vector<const CaptureRecord*> running;  // not ended
  CanName can_name = {};                      // limits what messages of refusals reveal
};

// Returns the spec as it is carried out. Without event types it gets the default filter. A snapshot
// gets its flight recorder and, if it selects nothing itself, that recorder's selection. A number
// of executions without a first one starts at the next.
//
// Fails with INVALID_ARGUMENT if the spec contradicts itself, or for an event type that no selected
// worker's runtime has; the message names the nearest. Fails with FAILED_PRECONDITION for a second
// standing capture of the same workers, and for a snapshot if no flight recorder, or more than one,
// matches. Pure.
absl::StatusOr<CaptureSpec> CompleteSpec(CaptureSpec spec, const CaptureContext& capture_context);

// Returns false if no worker can be selected by both.
bool CanOverlap(const CaptureSpec& a, const CaptureSpec& b);

// Returns the jobs of the workers that the spec selects now; workers without a known job add none.
std::set<std::string> SelectedJobs(const CaptureSpec& spec, const AgentRegistry& registry);

}  // namespace neurontrace
