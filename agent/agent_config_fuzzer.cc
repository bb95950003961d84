// SPDX-License-Identifier: Apache-2.0
// Any file of options, as a running agent reads it again when it changes.
#include "agent/config.h"
#include "daemon/config_fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzConfigFile(data, size, neurontrace::ReadAgentConfig);
  return 0;
}
