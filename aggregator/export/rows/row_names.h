// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/ids.h"

// What processes and rows of a trace are called. Pure.
namespace neurontrace {

// Returns the label of the second and each further process with one label.
std::string DisambiguatedLabel(const std::string& label, const WorkerIdentity& worker);
// Returns the name of a framework thread that its file does not name. Files use texts as ids, too.
std::string ThreadName(const std::string& thread_id);
// Returns the name without trailing spaces: Kineto's names end in one.
std::string Trimmed(const std::string& name);
// Returns "core4" for a row of a physical core; UINT64_MAX means the cores that share a row.
std::string CoreRowName(uint64_t core);
// Returns "gid0-3" or "gid1,4,6-7", with at most a few ranges; empty if there are none.
std::string RanksText(std::vector<int64_t> worker_gids);
// Returns the name of a counter event with its id, if it has one: "queue[second]".
std::string CounterName(const TimelineRecord& record);
// Returns a text that distinguishes workers.
std::string WorkerKey(const WorkerIdentity& worker);

}  // namespace neurontrace
