// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace neurontrace {

// Counts the holes in one core's nc_local_id: events that the runtime recorded and overwrote before
// they were fetched. Holes are taken stock of document by document, since ids may stand in any
// order inside one. A plain value.
//
// What is known of the ids: the runtime gives one to each event that passes its filter, in steps of
// one, and begins again with each trace. Whether it begins with 0 or 1 is its own affair, and is
// learned from any core that is seen to begin with 0.
class SequenceGaps {
 public:
  struct Holes {
    uint64_t events = 0;
    bool unknown = false;  // a jump too wide to believe
  };
  // More cannot be recorded between two fetches, however busy a core is.
  static constexpr uint64_t kHolesMax = uint64_t{1} << 36;

  // A trace begins with empty rings. It is the state at first, too: a core of which nothing was
  // ever told has lost all that came before what is seen of it.
  void BeginTrace() { trace_begins_ = true; }
  // What comes was held in rings for as long as they lasted: what was before the first is no hole.
  void BeginAnywhere() {
    trace_begins_ = false;
    known_ = false;
    next_ = 0;
  }

  // The state between documents: one more than the highest id of this trace, 0 before the first.
  uint64_t mark() const { return trace_begins_ ? 0 : next_; }
  void Resume(uint64_t mark) {
    trace_begins_ = mark == 0;
    known_ = mark > 0;
    next_ = mark;
  }

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

  // A document that nobody reads had `count` ids below `ids_end`. Between documents.
  Holes PassOver(uint64_t ids_end, uint64_t count, bool begins_with_zero) {
    lowest_ = ids_end - std::min(ids_end, count);
    highest_ = ids_end - 1;
    count_ = count;
    // Lost once more, or the tail of what is expected: all of it counts.
    return EndDocument(begins_with_zero);
  }

  // Ends a document. `begins_with_zero`: what is known of this runtime.
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

  bool trace_begins_ = true;
  bool known_ = false;
  uint64_t next_ = 0;

  // The document at hand.
  uint64_t lowest_ = 0;
  uint64_t highest_ = 0;
  uint64_t count_ = 0;
  uint64_t behind_ = 0;
};

}  // namespace neurontrace
