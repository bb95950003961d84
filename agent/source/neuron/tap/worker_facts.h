// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/neuron/tap/job_facts.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"
#include "lib/trace/rank_facts.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Limit of the part of a worker's command line that is reported.
inline constexpr size_t kWorkerCommandBytesMax = 1'024;

// Returns what an agent reports of a command line: its first word, or all of it with
// `with_arguments`, as arguments may contain secrets. Cleaned, and at most kWorkerCommandBytesMax
// long. Pure.
std::string ReportedCommand(std::string_view command_line, bool with_arguments);

// A worker's facts as its tap wrote them, parsed. A plain value.
struct WorkerFacts {
  // The command line, or the executable if there is none; not cut yet.
  std::string command;
  // The job's name; empty where nothing names one.
  std::string job;
  std::vector<KeyValue> job_facts;  // as WorkerInfo has them
  std::string runtime_version;
  // What is wrong with the tap or the runtime, for people.
  std::string detail;
  // The event types that the runtime knows; empty: not known yet.
  std::vector<std::string> event_types;
  // Logical cores of the process; 0: not known yet.
  uint32_t visible_cores = 0;
  // True if the facts were written while the runtime was initialised.
  bool runtime_known = false;
  // The variables that the tap passes on.
  Environment environment;
  // How many variables were too long for the tap.
  uint32_t environment_left_out = 0;
  std::map<uint32_t, CommunicatorFact> communicators;  // by nc_idx
  friend bool operator==(const WorkerFacts&, const WorkerFacts&) = default;
};
// Parses the facts. Invalid values count as absent. Pure.
WorkerFacts SortFacts(const TapBufferReader::Facts& facts);

// Resolves the ranks of all workers of the node: agent/ranks in production, which sources may not
// include. Pure.
using RankResolver = std::function<std::vector<RankResolution>(std::span<const RankFacts>)>;

}  // namespace neurontrace
