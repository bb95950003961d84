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

// Tells whether whoever asks for a capture may be told of another one; empty: of all.
using MayName = std::function<bool(const CaptureSpec&)>;

// What a capture that is asked for has to fit into.
struct CaptureSurroundings {
  const AgentRegistry& registry;
  std::vector<const CaptureRecord*> running;  // that have not ended
  MayName may_name = {};                      // for the messages of refusals
};

// The spec as it is carried out: without event types the default filter is put in, a snapshot gets
// its flight recorder and, where it selects nothing itself, that one's selection; executions alone
// begin at the next one. INVALID_ARGUMENT for what contradicts itself, and for event types that no
// selected worker's runtime has (it names the nearest); FAILED_PRECONDITION for a standing capture
// where there is one, and a snapshot where there is none or it is not known which (it says what to
// do). Pure.
absl::StatusOr<CaptureSpec> CompleteSpec(CaptureSpec spec, const CaptureSurroundings& surroundings);

// False where no worker can be selected by both.
bool MayOverlap(const CaptureSpec& a, const CaptureSpec& b);

// The jobs of the workers that it selects now; those without a known job are of none.
std::set<std::string> SelectedJobs(const CaptureSpec& spec, const AgentRegistry& registry);

}  // namespace neurontrace
