// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/ids.h"

// What processes and rows of a trace are called. Pure.
namespace neurontrace {

// Of the second and further processes of one label.
std::string DisambiguatedLabel(const std::string& label, const WorkerIdentity& worker);
// Of a framework thread that its file does not name: files have words for ids, too.
std::string ThreadName(const std::string& thread_id);
// Kineto's names end in a space.
std::string Trimmed(const std::string& name);
// Of a row of physical core `core`: "core4"; UINT64_MAX stands for the cores that share a row.
std::string CoreRowName(uint64_t core);
// "gid0-3", "gid1,4,6-7", at most a few ranges of them; empty: none.
std::string RanksText(std::vector<int64_t> worker_gids);
// Of a counter event: its name and, where it has one, its id: "queue[second]".
std::string CounterName(const TimelineRecord& record);
// A text that tells workers apart.
std::string WorkerKey(const WorkerIdentity& worker);

}  // namespace neurontrace
