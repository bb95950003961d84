// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Computes how far the times of a timeline's records can be from the truth, in nanoseconds: the
// error bound of the host's clock plus, for events that a device stamped, that of the device's
// clock. Records should come roughly in the order of time, as its cursors search forwards. The
// streams must outlive it. Used by one thread at a time.
class RecordBounds {
 public:
  // What is known of one start, kept for when the record itself is gone. A plain value.
  struct Moment {
    // How far the start can be from the truth; nullopt if that is not known.
    std::optional<uint64_t> bound_ns;
    // The part of it that does not come from the host's clock; nullopt if it is not known.
    std::optional<uint64_t> own_ns;
    // Equal for two moments exactly if one host's clock stamped both.
    uint32_t clock = 0;
  };

  // `streams` are those of the reader that yields the records: TimelineRecord::stream indexes them.
  explicit RecordBounds(std::span<const TimelineStream> streams);

  // Returns what ForOrder needs of the record's start.
  Moment Keep(const TimelineRecord& record);
  // Returns the bound of the record's start, or nullopt if it is not known.
  std::optional<uint64_t> Of(const TimelineRecord& record);

  // Returns the distance beyond which it is certain which of two starts came first, or nullopt if
  // it never is. If one host's clock stamped both, that clock alone gives their order, and its
  // error cancels out.
  static std::optional<uint64_t> ForOrder(const Moment& a, const Moment& b);
  std::optional<uint64_t> ForOrder(const TimelineRecord& a, const TimelineRecord& b) {
    return ForOrder(Keep(a), Keep(b));
  }

 private:
  std::vector<ClockMapCursor> clocks_;  // by stream
  // Numbers of the hosts' clocks, by stream.
  std::vector<uint32_t> numbers_;
};

}  // namespace neurontrace
