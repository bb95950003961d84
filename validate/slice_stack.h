// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "validate/trace_finding.h"

namespace neurontrace {

// The slices of one track that are open, and those that ended while slices in them were open, as
// Perfetto's importer holds them (src/trace_processor/importers/common/slice_tracker.cc). Times do
// not run backwards. Holds memory for the slices that are in it and no more. One thread at a time.
class SliceStack {
 public:
  static constexpr uint64_t kOpen = UINT64_MAX;

  struct Slice {
    uint64_t start_ns = 0;
    uint64_t end_ns = kOpen;
    uint64_t name = 0;                    // a hash; 0: none
    uint64_t category = 0;                // a hash; 0: none
    TracePosition at;                     // of its begin, and of its end once it has ended
    std::optional<uint64_t> duration_ns;  // as its arguments have it
  };
  // A slice that had ended while `slices` in it were open, and still were at the next event.
  struct Cut {
    Slice slice;
    size_t slices = 0;
  };

  // Removes what has ended before an event at `time_ns`. Call again while it returns something: the
  // open slices that were cut short are removed, too.
  std::optional<Cut> Settle(uint64_t time_ns);
  void Begin(const Slice& slice) { slices_.push_back(slice); }
  // Ends the innermost open slice that fits these names and returns it as it was; nullopt: nothing
  // fits. An end without a name fits any, and a slice without a name any end's; an end with a
  // category only a slice of this category.
  std::optional<Slice> End(uint64_t name, uint64_t category, uint64_t time_ns, TracePosition at);
  void Clear();

  size_t size() const { return slices_.size(); }
  size_t open() const { return slices_.size() - ended_; }
  // From the outermost to the innermost, including those that have ended.
  const std::list<Slice>& slices() const { return slices_; }

 private:
  std::list<Slice> slices_;
  size_t ended_ = 0;  // of these
};

}  // namespace neurontrace
