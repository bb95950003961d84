// SPDX-License-Identifier: Apache-2.0
// Any file of options, as a running aggregator reads it again when it changes.
#include "aggregator/config.h"
#include "daemon/config_fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzConfigFile(data, size, neurontrace::ReadAggregatorConfig);
  return 0;
}
