// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "cli/worker_ranks.h"
#include "neurontrace/v1/operator_service.pb.h"

// The outcome of each worker that a capture selected, as text, for captures, flight recorders and
// `record`. Pure functions; states and obstacles are those of operator_service.proto.
namespace neurontrace::cli {

// Returns the text of an obstacle: "busy: other profiler", "no tap"; "" for none, "unknown
// obstacle" for one of a later version.
std::string ObstacleName(v1::CaptureObstacle obstacle);
// Returns the text of a state: "armed", "recorded", "refused", "suspended" …
std::string OutcomeName(v1::CaptureWorkerState state);
// Returns the obstacle with its details; "" if there is none.
std::string ReasonOf(const v1::CaptureWorkerStatus& worker);

// Returns whether the worker was selected and has no whole part in the capture.
bool IsLeftOut(const v1::CaptureWorkerStatus& worker);
// Returns whether less of this worker was recorded than was asked for: a snapshot that reaches less
// far back, or an ended capture by execution that began at another one, or recorded none.
bool FallsShort(const v1::CaptureWorkerStatus& worker, const v1::Capture& capture);

// Returns one line for each worker: those left out first, then those that fell short, then those
// that lost events, each in the order of jobs and ranks. Beyond `rows_max` lines it reports how
// many are not shown. "" for a capture without workers. `columns` as in FormatTable.
std::string FormatOutcome(const v1::Capture& capture, const WorkerRanks& ranks, size_t rows_max,
                          size_t columns = 0);

// Returns "15 of 16 workers recorded (no tap: 1)", and how close together they began.
std::string FormatOutcomeSummary(const v1::Capture& capture);

// Returns a table of the traces that frameworks were asked for, missing ones first, and how many
// came; the table has a line for each missing one, up to `rows_max`. "" if none was asked for.
std::string FormatFrameworkTraces(const v1::Capture& capture, size_t rows_max, size_t columns = 0);

// Returns how many of a capture's or certificate's entries are processes, not an instance's
// framework files.
template <typename Entries>
size_t CountWorkers(const Entries& entries) {
  return static_cast<size_t>(std::count_if(entries.begin(), entries.end(),
                                           [](const auto& entry) { return !entry.framework(); }));
}

// Returns "32 workers" or "32 workers, 4 framework sources".
std::string FormatParticipants(size_t workers, size_t framework_sources);
template <typename Entries>
std::string FormatParticipants(const Entries& entries) {
  const size_t workers = CountWorkers(entries);
  return FormatParticipants(workers, static_cast<size_t>(entries.size()) - workers);
}

}  // namespace neurontrace::cli
