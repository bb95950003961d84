// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/validate/trace_finding.h"
#include "lib/validate/trace_message.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

// Returns the 64-bit FNV-1a hash of `text`; never 0, which means no text.
uint64_t HashText(std::string_view text);

// An interned text: its hash for comparisons, and its beginning for messages.
struct InternedText {
  uint64_t hash = 0;
  std::string beginning;
};

// The state that a packet sequence has built up, on which its later packets rely.
struct TraceSequence {
  bool has_state = false;    // it was cleared, and no packet has been lost since
  bool was_cleared = false;  // at some time
  bool is_cut = false;       // some texts exceeded the limit, so a missing one may be valid
  bool has_thread = false;   // a ThreadDescriptor names the thread of its events
  uint64_t default_clock = 0;
  std::optional<uint64_t> default_track_uuid;
  uint64_t default_extra_uuids = 0;
  uint64_t default_extra_double_uuids = 0;
  // By field of InternedData and number.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, InternedText> texts;
};

// The sequences of a trace by their numbers. One thread at a time; pointers are valid until the
// next call of Of.
class SequenceTable {
 public:
  // Both must outlive this.
  SequenceTable(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  // Returns the sequence, adding it if it is new; nullptr if there are too many.
  TraceSequence* Of(uint32_t id);
  // Forgets the sequence's state and begins a new one.
  void Clear(TraceSequence& sequence);
  // Read TracePacketDefaults, and InternedData. Both throw protozero::exception.
  void TakeDefaults(std::string_view defaults, TraceSequence& sequence);
  void TakeInterned(std::string_view data, TraceSequence& sequence);
  size_t size() const { return sequences_.size(); }

 private:
  TraceFindingLog& log_;
  TraceSummary& summary_;
  absl::flat_hash_map<uint32_t, TraceSequence> sequences_;
  size_t texts_ = 0;
  TraceMessage data_, entry_;
};

}  // namespace neurontrace
