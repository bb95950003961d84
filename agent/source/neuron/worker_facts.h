// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/neuron/job_facts.h"
#include "agent/source/neuron/tap_buffer_reader.h"
#include "trace/worker_info.h"

namespace neurontrace {

// Of a worker's command line that is reported.
inline constexpr size_t kWorkerCommandBytesMax = 1'024;

// What an agent reports of a command line: its first word, or all of it if `with_arguments`, as
// arguments can hold secrets. Cleaned and at most kWorkerCommandBytesMax long.
std::string ReportedCommand(std::string_view command_line, bool with_arguments);

// What an observed communicator call said about one core.
struct ObservedRank {
  int64_t g_device_id = -1;
  int64_t g_device_count = 0;
  friend bool operator==(const ObservedRank&, const ObservedRank&) = default;
};

// A worker's facts, as its tap wrote them, sorted out. A plain value.
struct WorkerFacts {
  std::string command;
  std::string job;                  // empty where nothing names one
  std::vector<KeyValue> job_facts;  // as WorkerInfo has them
  std::string runtime_version;
  std::string detail;                    // what is wrong there, in words
  std::vector<std::string> event_types;  // that the runtime knows; empty: not known yet
  uint32_t visible_cores = 0;            // 0: not known yet
  bool runtime_known = false;            // read, and written while the runtime was initialised
  Environment environment;
  uint32_t environment_left_out = 0;               // variables that were too long for the tap
  std::map<uint32_t, ObservedRank> communicators;  // by nc_idx
  friend bool operator==(const WorkerFacts&, const WorkerFacts&) = default;
};
// Values that make no sense count as not there.
WorkerFacts SortFacts(const TapBufferReader::Facts& facts);

// Everything that can tell the global ranks of a worker's cores.
struct RankInputs {
  Environment environment;
  std::map<uint32_t, ObservedRank> communicators;
  std::map<uint32_t, int64_t> event_gids;  // worker_gid >= 0 of events, by nc_idx
  uint32_t visible_cores = 0;
  uint32_t local_ordinal = 0;    // of this worker among the node's workers of its job
  uint32_t workers_on_node = 1;  // of its job
  friend bool operator==(const RankInputs&, const RankInputs&) = default;
};
struct ResolvedRanks {
  std::vector<CoreInfo> cores;  // by nc_idx; evidence best first
  std::vector<std::string> warnings;
};
// agent/ranks in production; a function here, as sources may not look there. Pure.
using RankResolver = std::function<ResolvedRanks(const RankInputs&)>;

}  // namespace neurontrace
