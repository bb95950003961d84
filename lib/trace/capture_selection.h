// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Which workers a capture is about: one rule, by which agents record and the aggregator counts.
// Pure.
//
// A worker is selected when it is on a selected instance, of the selected job, has all of the job
// facts, and has a selected core whose best known rank lies in a selected range. Of what is asked
// for and not known of the worker (its job, its ranks) it has none; only a worker that names no
// core at all may have any of them.

// Returns the names that the worker's job has: its key, and what Slurm, torchelastic or the
// communicator call it. Empty where it has none.
std::vector<std::string_view> JobNamesOf(const WorkerInfo& worker);

// Whether `job` names the worker's job: its key, or what Slurm, torchelastic or the communicator
// call it.
bool IsOfJob(std::string_view job, const WorkerInfo& worker);

// Whether the core, with its best known rank, is one of those selected.
bool SelectsCore(const CaptureSpec& spec, const CoreInfo& core);

// Why the capture does not select the worker, for people; empty where it does.
std::string WhyNotSelected(const CaptureSpec& spec, const WorkerInfo& worker);

inline bool Selects(const CaptureSpec& spec, const WorkerInfo& worker) {
  return WhyNotSelected(spec, worker).empty();
}

}  // namespace neurontrace
