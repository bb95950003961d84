// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregator/export/grouping.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// The levels of the tree between a process and its rows, as the secondary grouping says: one for
// each of its parts in the order given, but for a thread that comes last, which the rows are. What
// is not known is no level, nor are cores where a worker has one. Constant after construction: any
// thread.
class GroupLevels {
 public:
  // Refers to both.
  GroupLevels(const Grouping& grouping, std::span<const TimelineStream> streams);

  // Their names, outermost first: "worker gid35", "nc3". Numbers have leading zeros, because what
  // stands directly below a process is sorted by name. Without a thread: down to the levels that
  // the stream has for all of its threads.
  std::vector<std::string> Of(uint32_t stream, std::optional<uint64_t> thread_id) const;

 private:
  std::string NameOf(Grouping::Part part, const TimelineStream& stream, uint64_t thread_id) const;
  std::string CorePath(uint32_t stream) const;

  const Grouping& grouping_;
  const std::span<const TimelineStream> streams_;
  std::vector<Grouping::Part> parts_;
  size_t gid_digits_ = 1;
  size_t core_digits_ = 1;
  std::vector<bool> has_core_level_;  // by stream
};

}  // namespace neurontrace
