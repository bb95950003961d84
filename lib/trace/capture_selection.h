// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/worker_info.h"

// Which workers a capture selects: one rule, by which agents record and the aggregator counts. Pure
// functions, any thread.
//
// A worker is selected if it is on a selected instance, belongs to the selected job, has all of the
// job facts, and has a selected core whose best known rank is in a selected range. A property that
// is not known of a worker (its job, its ranks) does not match. The exception is a worker that
// names no core at all, which may have any core.
namespace neurontrace {

// Returns all names of the worker's job: its key, and the names that Slurm, torchelastic or the
// communicator use. Empty if it has none. The views refer to `worker`.
std::vector<std::string_view> JobNamesOf(const WorkerInfo& worker);

// Returns whether `job` is one of the names that JobNamesOf returns.
bool IsOfJob(std::string_view job, const WorkerInfo& worker);

// Returns whether the core, by its number and its best known rank, is selected.
bool SelectsCore(const CaptureSpec& spec, const CoreInfo& core);

// Returns why the capture does not select the worker, for people; empty if it does.
std::string NotSelectedReason(const CaptureSpec& spec, const WorkerInfo& worker);

// Returns whether the capture selects the worker.
inline bool Selects(const CaptureSpec& spec, const WorkerInfo& worker) {
  return NotSelectedReason(spec, worker).empty();
}

}  // namespace neurontrace
