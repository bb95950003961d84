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

// Returns the 64-bit FNV-1a hash of `text`; never 0, which means no text. Not safe against crafted
// collisions, which only mislead a finding about the same file.
uint64_t HashText(std::string_view text);

// An interned text: its hash for comparisons, and its beginning for messages. The whole text is not
// kept, so that memory is bounded.
struct InternedText {
  uint64_t hash = 0;
  std::string beginning;
};

// The state that a packet sequence has built up, on which its later packets rely. Reset when the
// sequence clears its state.
struct TraceSequence {
  bool has_state = false;    // it was cleared, and no packet has been lost since
  bool was_cleared = false;  // at some time
  bool is_cut = false;       // some texts exceeded the limit, so a missing one may be valid
  bool has_thread = false;   // a ThreadDescriptor names the thread of its events
  // The clock of packets that name none; 0: the file's.
  uint64_t default_clock = 0;
  // The track of events that name none.
  std::optional<uint64_t> default_track_uuid;
  // Number of tracks of extra counters, integer and floating-point.
  uint64_t default_extra_uuids = 0;
  uint64_t default_extra_double_uuids = 0;
  // By field of InternedData and number.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, InternedText> texts;
};

// The sequences of a trace by their numbers (trusted_packet_sequence_id). Used by TraceValidator;
// one thread at a time. Pointers are valid until the next call of Of.
class SequenceTable {
 public:
  // Both must outlive this.
  SequenceTable(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  // Returns the sequence, adding it if it is new; nullptr if there are too many.
  TraceSequence* Of(uint32_t id);
  // Forgets the sequence's state and begins a new one. Called for a packet that clears the state;
  // counts a sequence header.
  void Clear(TraceSequence& sequence);
  // Read TracePacketDefaults, and InternedData. Log numbers that are 0 or used twice. Both throw
  // protozero::exception if the bytes are malformed.
  void ReadDefaults(std::string_view defaults, TraceSequence& sequence);
  void ReadInterned(std::string_view data, TraceSequence& sequence);
  // Returns the number of sequences.
  size_t size() const { return sequences_.size(); }

 private:
  TraceFindingLog& log_;
  TraceSummary& summary_;
  // By number, at most validate_limits::kSequencesMax.
  absl::flat_hash_map<uint32_t, TraceSequence> sequences_;
  // Of all sequences, for the limit.
  size_t texts_ = 0;
  // The current messages; reused to save memory allocations.
  TraceMessage data_, entry_;
};

}  // namespace neurontrace
