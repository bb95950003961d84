// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "validate/intern_table.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"

namespace neurontrace {

// What a packet sequence has told, and its later packets rely on.
struct TraceSequence {
  bool has_state = false;    // it was cleared, and nothing lost since
  bool was_cleared = false;  // at some time
  bool is_cut = false;       // some texts no longer fitted: what is not found may be there
  bool has_thread = false;   // a ThreadDescriptor says which it is
  uint64_t default_clock = 0;
  std::optional<uint64_t> default_track_uuid;
  uint64_t default_extra_uuids = 0;
  uint64_t default_extra_double_uuids = 0;
  InternTable categories;
  InternTable event_names;
  InternTable annotation_names;
  InternTable strings;

  size_t texts() const {
    return categories.size() + event_names.size() + annotation_names.size() + strings.size();
  }
};

// The sequences of a trace by their numbers. One thread at a time; references hold until the next
// call of Of.
class SequenceTable {
 public:
  SequenceTable(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  // nullptr: there are too many.
  TraceSequence* Of(uint32_t id);
  void Clear(TraceSequence& sequence);
  // Both throw protozero::exception.
  void TakeDefaults(std::string_view defaults, TraceSequence& sequence);
  void TakeInterned(std::string_view data, TraceSequence& sequence);
  size_t size() const { return sequences_.size(); }

 private:
  void TakeText(std::string_view entry, TraceSequence& sequence, InternTable& table);

  TraceFindingLog& log_;
  TraceSummary& summary_;
  absl::flat_hash_map<uint32_t, TraceSequence> sequences_;
  size_t texts_ = 0;
};

}  // namespace neurontrace
