// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "validate/trace_finding.h"

namespace neurontrace {

// The slices of one track that are open, and those that ended while slices in them were open, as
// Perfetto's importer holds them (src/trace_processor/importers/common/slice_tracker.cc). Times do
// not run backwards. One thread at a time.
class SliceStack {
 public:
  static constexpr uint64_t kOpen = UINT64_MAX;

  struct Slice {
    uint64_t start_ns = 0;
    uint64_t end_ns = kOpen;
    uint64_t name = 0;                    // hashes; 0: none
    uint64_t category = 0;                // likewise
    TracePosition at;                     // of its begin, and of its end once it has ended
    std::optional<uint64_t> duration_ns;  // as its arguments have it
  };
  // A slice that had ended while `slices` in it were open, and still were at the next event.
  struct Cut {
    Slice slice;
    size_t slices = 0;
  };

  // Before an event at `time_ns`: lets go of what has ended. Call again while it returns something:
  // the open slices that were cut short are gone, too.
  std::optional<Cut> Settle(uint64_t time_ns);
  void Begin(const Slice& slice);
  // A slice whose end is known when it begins; false: it lies across the end of another of these,
  // and is dropped.
  bool AddComplete(const Slice& slice);
  // Ends the innermost open slice that fits these names and returns it as it was; nothing fits:
  // nullopt. An end without a name fits any, and a slice without a name any end's; an end with a
  // category only a slice of this category.
  std::optional<Slice> End(uint64_t name, uint64_t category, uint64_t time_ns, TracePosition at);
  // After an event that is a slice of no length.
  void AddInstant() { has_instant_ = true; }
  // Something is there that an arrow could be bound to: an instant that came last, too.
  bool has_slice() const { return !slices_.empty() || has_instant_; }
  // Lets go of everything.
  void Clear();

  size_t size() const { return slices_.size(); }
  size_t open() const { return slices_.size() - ended_; }
  // From the outermost on; those that have ended are among them.
  std::span<const Slice> slices() const { return slices_; }
  // Slices that there is memory for: at most four times as many as there are, or a few.
  size_t capacity() const { return slices_.capacity(); }

 private:
  void Shrink();

  std::vector<Slice> slices_;  // from the outermost on
  size_t ended_ = 0;           // of these
  bool has_instant_ = false;   // nothing began or ended since
};

}  // namespace neurontrace
