// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/timeline/timeline_record.h"
#include "trace/ids.h"

namespace neurontrace {

// A host's samples (trace/host_samples.h) as the vendor's objects of `cpu_util` and `mem_usage`.
// False, and nothing is appended, for a record that has not what such an object must have.
bool AppendCpuUtil(const StreamIdentity& stream, const TimelineRecord& record, std::string& out);
bool AppendMemoryUsage(const StreamIdentity& stream, const TimelineRecord& record,
                       std::string& out);

}  // namespace neurontrace
