// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/source/annotate/annotation_reader.h"

namespace neurontrace {

// The event type of annotations whose category has no name.
inline constexpr std::string_view kAnnotationEventType = "annotation";

// A range that has begun, and perhaps ended.
struct AnnotatedRange {
  uint64_t number = 0;     // unique in its process and agent, ascending
  std::string event_type;  // of the begin, which the end has too
};

// Finds the begin of each range's end in one process. Pushes and pops of a thread and domain belong
// together by their levels, so that a dropped record costs its own range alone; starts and ends do
// by the range's id. A new recording forgets all open ranges. Used by one thread at a time.
class RangePairing {
 public:
  // Takes a kPush or kStart.
  AnnotatedRange Begin(const ReadAnnotation& read);
  // Takes a kPop or kEnd. Returns nothing if its begin is not known.
  std::optional<AnnotatedRange> End(const ReadAnnotation& read);
  // Forgets all open ranges; numbers continue.
  void Reset();

  uint64_t last_number() const { return last_number_; }
  size_t open() const { return open_; }

 private:
  // An open push of a thread and domain.
  struct Pushed {
    uint16_t level = 0;
    AnnotatedRange range;
  };
  using Stack = std::pair<uint32_t, uint16_t>;  // thread, domain

  void SeeRecording(uint32_t recording);
  // Removes the pushes at this level and above, whose pops were dropped.
  void DropFrom(uint16_t level, std::vector<Pushed>& stack);

  uint32_t recording_ = 0;
  uint64_t last_number_ = 0;
  size_t open_ = 0;
  absl::flat_hash_map<Stack, std::vector<Pushed>> stacks_;
  absl::flat_hash_map<uint64_t, AnnotatedRange> ranges_;
};

}  // namespace neurontrace
