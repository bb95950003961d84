// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "lib/validate/trace_finding.h"

namespace neurontrace {

// The open slices of one track, and those that ended while slices in them were open, as Perfetto's
// importer keeps them (src/trace_processor/importers/common/slice_tracker.cc). Begin and an end of
// the innermost slice take constant time; other ends search from the inside. Times must not
// decrease. Memory is proportional to the slices in it. One thread at a time.
class SliceStack {
 public:
  // The end of a slice that has not ended.
  static constexpr uint64_t kOpen = UINT64_MAX;

  // Times are ns of the trace's clock.
  struct Slice {
    uint64_t start_ns = 0;
    uint64_t end_ns = kOpen;
    uint64_t name = 0;                    // a hash; 0: none
    uint64_t category = 0;                // a hash; 0: none
    TracePosition at;                     // of its begin, and of its end once it has ended
    std::optional<uint64_t> duration_ns;  // from its arguments
  };
  // A slice that had ended while `slices` in it were open, and still were at the next event.
  struct Cut {
    Slice slice;
    // The number of open slices that were removed with it.
    size_t slices = 0;
  };

  // Removes slices that have ended before an event at `time_ns`. Called again while it returns a
  // value: the open slices that were cut short are removed too.
  std::optional<Cut> Settle(uint64_t time_ns);
  // Opens a slice in the innermost one.
  void Begin(const Slice& slice) { slices_.push_back(slice); }
  // Ends the innermost open slice that fits these names and returns it as it was; nullopt if none
  // fits. An end without a name fits any slice, and a slice without a name any end; an end with a
  // category fits only slices of this category.
  std::optional<Slice> End(uint64_t name, uint64_t category, uint64_t time_ns, TracePosition at);
  // Forgets all slices.
  void Clear();

  // Returns the number of slices with those that have ended, and without them.
  size_t size() const { return slices_.size(); }
  size_t open() const { return slices_.size() - ended_; }
  // From the outermost to the innermost, including those that have ended.
  const std::list<Slice>& slices() const { return slices_; }

 private:
  // From the outermost to the innermost; a list, so that removing one is cheap and others keep
  // their place.
  std::list<Slice> slices_;
  size_t ended_ = 0;  // of these
};

}  // namespace neurontrace
