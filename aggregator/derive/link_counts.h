// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// What FrameworkLinks has found. In records. What has not been joined says why.
struct LinkCounts {
  uint64_t operations = 0;            // of frameworks, where the capture has a worker of that id
  uint64_t operations_elsewhere = 0;  // of a process that is no worker of the capture
  uint64_t operations_ambiguous = 0;  // two workers of the instance have that process id
  uint64_t operations_unnamed = 0;    // no number for a process or a thread
  uint64_t operations_own_time = 0;   // their file's times count from a moment that is not known
  uint64_t calls = 0;                 // outermost calls of the runtime, where operations were seen
  uint64_t calls_joined = 0;          // to the innermost operation around them
  uint64_t calls_crossing = 0;        // begin in an operation and end after it
  uint64_t calls_outside = 0;         // in no operation of their thread
  uint64_t calls_without_thread = 0;
  uint64_t calls_mapped = 0;      // calls whose nrta_seq_id a mapping file names
  uint64_t mapped_confirmed = 0;  // an operation of the mapping is the one that time has, or in it
  uint64_t mapped_added = 0;      // time has none: those of the mapping are joined
  uint64_t mapped_contradicted = 0;  // time has another one, which is joined
  uint64_t mapped_unseen = 0;        // none of the mapping was seen before the call
  uint64_t mapped_elsewhere = 0;     // operations of mapping files, of no worker that is known
  // Of these, beyond the limits of FrameworkNames and MappedOperations.
  uint64_t mapped_forgotten = 0;
  uint64_t operations_forgotten = 0;  // calls under way among them: beyond OpenSpans' limits
  uint64_t chains_forgotten = 0;      // beyond kChainsMax
  uint64_t executions = 0;
  uint64_t executions_unprepared = 0;  // no kbl_exec_pre with their exec_id was seen before them

  // What people should know, in words; each is told once.
  std::vector<std::string> Warnings() const;
};

}  // namespace neurontrace
