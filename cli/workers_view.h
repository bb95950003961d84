// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "neurontrace/v1/operator_service.pb.h"

// How the workers that live read on a terminal. Pure functions.
namespace neurontrace::cli {

struct WorkersView {
  bool facts = false;  // what --job and its companions find each worker by, instead of its command
  bool brief = false;  // the jobs and what is wrong, without a line for each worker
  bool wide = false;   // nothing cut short, nothing folded
  size_t columns = 0;  // of the terminal, as in FormatTable
};

// Whether `state` is the beginning of the name of the worker's state: "busy", "no tap".
bool IsInState(const v1::WorkerInventory& worker, const std::string& state);

// A line for each job, a line for each worker in the order of jobs and ranks, and below them
// conflicts, details and warnings. Lines that differ only in numbers and instances are folded.
std::string FormatWorkers(const v1::ListWorkersReply& reply, const WorkersView& view);

}  // namespace neurontrace::cli
