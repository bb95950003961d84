// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tap/agent_protocol.h"

// The capture that the agent wants, as a plain value, and the parser of the agent's commands. All
// values come from outside the process and are valid once ParseCommand has accepted them. Pure
// functions without memory allocation.
namespace neurontrace::tap {

// What a START asks for.
struct CaptureSpec {
  // The fields are those of TapStart, whose limits they keep.
  uint8_t capture_id[kTapCaptureIdBytes];
  uint64_t max_events_per_nc;
  uint64_t nc_bitmap[4];
  TapEventRule event_rule;
  bool holds;  // its events stay in the runtime's rings
  uint32_t name_count;
  uint32_t names_bytes;
  char names[kTapMessageBytesMax];  // NUL-terminated, one after the other

  // Returns whether a core is selected. An empty bitmap selects every core.
  bool Wants(uint32_t core) const {
    if ((nc_bitmap[0] | nc_bitmap[1] | nc_bitmap[2] | nc_bitmap[3]) == 0) return true;
    return core < kTapMaxCores && ((nc_bitmap[core / 64] >> (core % 64)) & 1) != 0;
  }
  // Returns whether no core is excluded, so that the runtime's default can stay.
  bool WantsEveryCore() const {
    return (nc_bitmap[0] | nc_bitmap[1] | nc_bitmap[2] | nc_bitmap[3]) == 0;
  }
};

// Compares two ids of kTapCaptureIdBytes.
bool SameCaptureId(const uint8_t* a, const uint8_t* b);

// Walks the names of a spec: returns the first for null, and null after the last.
const char* NextName(const CaptureSpec& spec, const char* name);
// Returns whether `event_type` is one of the names.
bool NamesEventType(const CaptureSpec& spec, const char* event_type);

// A parsed command.
struct AgentCommand {
  TapMessageType type;                      // kStart, kStop or kCollect
  CaptureSpec spec;                         // valid for kStart; the other types set only capture_id
  uint64_t at_ns;                           // monotonic; 0: at once
  uint8_t recorder_id[kTapCaptureIdBytes];  // kCollect
};

// Parses one packet of any known version into `command`. Returns null if it is valid, else what is
// wrong with it, as a text that lives for ever.
const char* ParseCommand(const uint8_t* data, size_t size, AgentCommand* command);

}  // namespace neurontrace::tap
