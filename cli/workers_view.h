// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "neurontrace/v1/operator_service.pb.h"

// Running workers as text for a terminal, for `neurontrace workers`. Pure functions.
namespace neurontrace::cli {

// Which parts are shown.
struct WorkersView {
  bool facts = false;  // the facts that --job and similar options match, instead of the command
  bool brief = false;  // only the jobs and the problems, no line for each worker
  bool wide = false;   // nothing cut, nothing folded
  size_t columns = 0;  // of the terminal, as in FormatTable
};

// Returns whether `state` is the beginning of the name of the worker's state: "busy", "no tap".
bool IsInState(const v1::WorkerInventory& worker, const std::string& state);

// Returns a line for each job, a line for each worker in the order of jobs and ranks, and below
// them conflicts, details and warnings. Lines that differ only in numbers and instances are folded.
std::string FormatWorkers(const v1::ListWorkersReply& reply, const WorkersView& view);

}  // namespace neurontrace::cli
