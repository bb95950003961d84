// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregator/export/grouping.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// The levels of the tree between a process and its rows, as the secondary grouping defines them:
// one for each of its parts in the given order, except for a thread at the end, which the rows
// represent. Unknown parts make no level, nor do cores if a worker has only one. Constant after
// construction, so that any thread may use it.
class GroupLevels {
 public:
  // Both must outlive this object.
  GroupLevels(const Grouping& grouping, std::span<const TimelineStream> streams);

  // Returns the names of a stream's levels, outermost first: "worker gid35", "nc3". Numbers have
  // leading zeros, because Perfetto sorts the tracks directly below a process by name. Without a
  // thread, only the levels that all of the stream's threads share.
  std::vector<std::string> Of(uint32_t stream, std::optional<uint64_t> thread_id) const;

 private:
  std::string NameOf(Grouping::Part part, const TimelineStream& stream, uint64_t thread_id) const;
  // Returns where in the tree the level of a stream's cores is, apart from threads.
  std::string CorePath(uint32_t stream) const;

  const Grouping& grouping_;
  const std::span<const TimelineStream> streams_;
  // The parts that make levels, outermost first.
  std::vector<Grouping::Part> parts_;
  size_t gid_digits_ = 1;
  size_t core_digits_ = 1;
  std::vector<bool> has_core_level_;  // by stream
};

}  // namespace neurontrace
