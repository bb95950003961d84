// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace neurontrace {

// Counts the gaps in one core's nc_local_id: events that the runtime recorded and overwrote before
// they were fetched. Gaps are computed document by document, since ids may be in any order within
// one. A plain value.
//
// Known about the ids: the runtime gives one to each event that passes its filter, in steps of one,
// and starts again with each trace. Whether it starts with 0 or 1 differs, and is learned from any
// core that is seen to start with 0.
class SequenceGaps {
 public:
  // The events that are missing in one document.
  struct Holes {
    uint64_t events = 0;
    // A jump too wide to be believed: the number of events is not known.
    bool unknown = false;
  };
  // More events cannot be recorded between two fetches, however busy a core is.
  static constexpr uint64_t kHolesMax = uint64_t{1} << 36;

  // Handles the begin of a trace with empty rings. Also the initial state: a core without any
  // report has lost everything before its first event.
  void BeginTrace() { trace_begins_ = true; }
  // Handles that the events to come were held in rings that overwrite: what preceded the first is
  // no gap.
  void BeginAnywhere() {
    trace_begins_ = false;
    known_ = false;
    next_ = 0;
  }

  // Returns the state between documents, for cursors: one more than the highest id of this trace; 0
  // before the first.
  uint64_t mark() const { return trace_begins_ ? 0 : next_; }
  void Resume(uint64_t mark) {
    trace_begins_ = mark == 0;
    known_ = mark > 0;
    next_ = mark;
  }

  // Adds one event of the current document.
  void Observe(uint64_t id) {
    if (count_ == 0) {
      lowest_ = highest_ = id;
    } else {
      lowest_ = std::min(lowest_, id);
      highest_ = std::max(highest_, id);
    }
    ++count_;
    if (known_ && id < next_) ++behind_;
  }

  // Accounts for a document that the tap fetched and refused, with `count` ids below `ids_end`. To
  // be called between documents.
  Holes PassOver(uint64_t ids_end, uint64_t count, bool begins_with_zero) {
    lowest_ = ids_end - std::min(ids_end, count);
    highest_ = ids_end - 1;
    count_ = count;
    // Lost once more, or the tail of what is expected: all of it counts.
    return EndDocument(begins_with_zero);
  }

  // Ends a document and returns its gap. `begins_with_zero`: what is known about this runtime.
  Holes EndDocument(bool begins_with_zero) {
    if (count_ == 0) return {};
    const uint64_t first = FirstExpected(begins_with_zero);
    // Ids behind the expected one came late or again, and were counted when they were missed.
    const uint64_t counted = first == next_ && known_ ? count_ - behind_ : count_;
    Holes holes;
    if (highest_ >= first) {
      const uint64_t span = highest_ - first;  // one less than the ids from first to highest
      if (span >= kHolesMax) {
        holes.unknown = true;
      } else if (span + 1 > counted) {
        holes.events = span + 1 - counted;
      }
    }
    next_ = highest_ == UINT64_MAX ? UINT64_MAX : highest_ + 1;
    known_ = true;
    trace_begins_ = false;
    count_ = 0;
    behind_ = 0;
    return holes;
  }

 private:
  // Returns the id with which the document begins if nothing is missing.
  uint64_t FirstExpected(bool begins_with_zero) const {
    if (trace_begins_) {
      // A runtime that counts on over a restart shows it by the very next number.
      if (known_ && lowest_ == next_) return lowest_;
      return begins_with_zero ? 0 : std::min<uint64_t>(1, lowest_);
    }
    // All of it behind what is expected: the sequence began again without anybody saying so.
    if (!known_ || highest_ < next_) return lowest_;
    return next_;
  }

  // The next id is the first one of a trace that began with empty rings.
  bool trace_begins_ = true;
  // Whether `next_` has a meaning: one more than the highest id so far.
  bool known_ = false;
  uint64_t next_ = 0;

  // The document at hand.
  uint64_t lowest_ = 0;
  uint64_t highest_ = 0;
  uint64_t count_ = 0;
  // Ids of the document that are below `next_`.
  uint64_t behind_ = 0;
};

}  // namespace neurontrace
