// SPDX-License-Identifier: Apache-2.0
// Any packet: ParseCommand refuses it or gives a spec whose names can be walked to their end.
#include <stdlib.h>
#include <string.h>

#include "tap/capture_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static neurontrace::tap::AgentCommand command;
  if (neurontrace::tap::ParseCommand(data, size, &command) != nullptr) return 0;
  if (command.type == neurontrace::TapMessageType::kCollect) {
    // Two ids, and not one twice: what is collected never ends what holds.
    if (neurontrace::tap::SameCaptureId(command.spec.capture_id, command.recorder_id)) abort();
  }
  if (command.type != neurontrace::TapMessageType::kStart) return 0;
  uint32_t names = 0;
  for (const char* name = NextName(command.spec, nullptr); name != nullptr;
       name = NextName(command.spec, name)) {
    if (strlen(name) > neurontrace::kTapEventNameBytesMax) abort();
    ++names;
  }
  if (names != command.spec.name_count) abort();
  return 0;
}
