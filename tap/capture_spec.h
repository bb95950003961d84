// SPDX-License-Identifier: Apache-2.0
// What the agent wants recorded, as a plain value, and the parser of its commands. Everything here
// came from outside the process and is valid once ParseCommand has said so.
#pragma once

#include <cstddef>

#include "tap/agent_protocol.h"

namespace neurontrace::tap {

struct CaptureSpec {
  uint8_t capture_id[kTapCaptureIdBytes];
  uint64_t max_events_per_nc;
  uint64_t nc_bitmap[4];
  TapEventRule event_rule;
  bool holds;  // its events stay in the runtime's rings
  uint32_t name_count;
  uint32_t names_bytes;
  char names[kTapMessageBytesMax];  // NUL-terminated, one after the other

  bool Wants(uint32_t core) const {
    if ((nc_bitmap[0] | nc_bitmap[1] | nc_bitmap[2] | nc_bitmap[3]) == 0) return true;
    return core < kTapMaxCores && ((nc_bitmap[core / 64] >> (core % 64)) & 1) != 0;
  }
  bool WantsEveryCore() const {
    return (nc_bitmap[0] | nc_bitmap[1] | nc_bitmap[2] | nc_bitmap[3]) == 0;
  }
};

bool SameCaptureId(const uint8_t* a, const uint8_t* b);

// Walks the names of a spec: null first; null again at the end.
const char* NextName(const CaptureSpec& spec, const char* name);
bool NamesEventType(const CaptureSpec& spec, const char* event_type);

struct AgentCommand {
  TapMessageType type;                      // kStart, kStop or kCollect
  CaptureSpec spec;                         // but for kStart only capture_id
  uint64_t at_ns;                           // monotonic; 0: at once
  uint8_t recorder_id[kTapCaptureIdBytes];  // kCollect
};

// Reads one packet of any version that is known into `command`. Null if it is valid, else what is
// wrong with it.
const char* ParseCommand(const uint8_t* data, size_t size, AgentCommand* command);

}  // namespace neurontrace::tap
