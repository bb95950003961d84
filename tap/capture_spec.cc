// SPDX-License-Identifier: Apache-2.0
#include "tap/capture_spec.h"

#include <string.h>

namespace neurontrace::tap {

namespace {

// Returns whether an id is all zero, which means that there is no capture.
bool IsZero(const uint8_t* id) {
  uint8_t any = 0;
  for (uint32_t i = 0; i < kTapCaptureIdBytes; ++i) any |= id[i];
  return any == 0;
}

// Returns null if `bytes` hold exactly `count` names, each terminated and with a length between 1
// and the limit; else what is wrong.
const char* CheckNames(const char* names, uint32_t bytes, uint32_t count) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = static_cast<uint32_t>(strnlen(names + at, bytes - at));
    if (length == bytes - at) return "an event type name is not terminated";
    if (length == 0 || length > kTapEventNameBytesMax)
      return "an event type name has an invalid length";
    at += length + 1;
  }
  return at == bytes ? nullptr : "bytes follow the last event type name";
}

// Parse the body of one message, whose header ParseCommand has checked. They return what
// ParseCommand returns, and may leave `command` half written when they fail.
const char* ParseStart(const uint8_t* data, size_t size, AgentCommand* command) {
  // Copied, as the packet is not aligned and its fields are checked one after the other.
  TapStart start;
  if (size < sizeof start) return "START is too short";
  memcpy(&start, data, sizeof start);
  if (size - sizeof start != start.names_bytes) return "START has a wrong size of names";
  // A later agent's flag must not be ignored: it asks for something that this tap would not do.
  if ((start.flags & ~kTapStartFlagHold) != 0) return "START has flags that this tap does not know";
  if (start.event_rule > static_cast<uint32_t>(TapEventRule::kAllButThese)) {
    return "START has an event rule that this tap does not know";
  }
  if (start.name_count > kTapEventNamesMax) return "START has too many event type names";
  if (start.max_events_per_nc < kTapEventsPerCoreMin ||
      start.max_events_per_nc > kTapEventsPerCoreMax) {
    return "START's events per core are out of range";
  }
  if (IsZero(start.capture_id)) return "START has no capture id";
  const char* names = reinterpret_cast<const char*>(data) + sizeof start;
  if (const char* wrong = CheckNames(names, start.names_bytes, start.name_count)) return wrong;
  CaptureSpec* const spec = &command->spec;
  memcpy(spec->capture_id, start.capture_id, sizeof spec->capture_id);
  spec->max_events_per_nc = start.max_events_per_nc;
  memcpy(spec->nc_bitmap, start.nc_bitmap, sizeof spec->nc_bitmap);
  spec->event_rule = static_cast<TapEventRule>(start.event_rule);
  spec->holds = (start.flags & kTapStartFlagHold) != 0;
  spec->name_count = start.name_count;
  spec->names_bytes = start.names_bytes;
  memcpy(spec->names, names, start.names_bytes);
  command->at_ns = start.begin_at_monotonic_ns;
  return nullptr;
}

const char* ParseStop(const uint8_t* data, size_t size, AgentCommand* command) {
  TapStop stop;
  if (size != sizeof stop) return "STOP has a wrong size";
  memcpy(&stop, data, size);
  memcpy(command->spec.capture_id, stop.capture_id, sizeof stop.capture_id);
  command->at_ns = stop.stop_at_monotonic_ns;
  return nullptr;
}

const char* ParseCollect(const uint8_t* data, size_t size, AgentCommand* command) {
  TapCollect collect;
  if (size != sizeof collect) return "COLLECT has a wrong size";
  memcpy(&collect, data, sizeof collect);
  if (IsZero(collect.capture_id) || IsZero(collect.recorder_id)) return "COLLECT has no capture id";
  if (SameCaptureId(collect.capture_id, collect.recorder_id)) {
    return "COLLECT names one capture as both snapshot and flight recorder";
  }
  memcpy(command->spec.capture_id, collect.capture_id, sizeof collect.capture_id);
  memcpy(command->recorder_id, collect.recorder_id, sizeof command->recorder_id);
  command->at_ns = collect.at_monotonic_ns;
  return nullptr;
}

}  // namespace

bool SameCaptureId(const uint8_t* a, const uint8_t* b) {
  return memcmp(a, b, kTapCaptureIdBytes) == 0;
}

const char* NextName(const CaptureSpec& spec, const char* name) {
  const char* next = name == nullptr ? spec.names : name + strlen(name) + 1;
  return next < spec.names + spec.names_bytes ? next : nullptr;
}

bool NamesEventType(const CaptureSpec& spec, const char* event_type) {
  for (const char* name = NextName(spec, nullptr); name != nullptr; name = NextName(spec, name)) {
    if (strcmp(name, event_type) == 0) return true;
  }
  return false;
}

const char* ParseCommand(const uint8_t* data, size_t size, AgentCommand* command) {
  TapMessageHeader header;
  if (size < sizeof header) return "the message is shorter than its header";
  if (size > kTapMessageBytesMax) return "the message is too long";
  memcpy(&header, data, sizeof header);
  if (header.magic != kTapMessageMagic) return "the message has a wrong magic number";
  if (header.version != kTapProtocolVersion) return "the protocol version is unknown";
  if (header.length != size) return "the message's length differs from the packet's";
  command->type = static_cast<TapMessageType>(header.type);
  // An unknown type costs the connection: HELLO has listed the commands that this tap knows.
  switch (command->type) {
    case TapMessageType::kStart:
      return ParseStart(data, size, command);
    case TapMessageType::kStop:
      return ParseStop(data, size, command);
    case TapMessageType::kCollect:
      return ParseCollect(data, size, command);
    default:
      return "the message is not a command";
  }
}

}  // namespace neurontrace::tap
