// SPDX-License-Identifier: Apache-2.0
// Any bytes as fetch documents, which zero bytes separate. All are decoded twice, so that what is
// learned from one is tried on the others, with and without predictions: nothing may differ.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/source/neuron/decode/prediction_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::PredictionComparison comparison;
  for (int round = 0; round < 2; ++round) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    while (!rest.empty()) {
      const std::string_view document = rest.substr(0, rest.find('\0'));
      const std::string difference = comparison.Decode(document);
      if (!difference.empty()) {
        std::fprintf(stderr, "a prediction differs: %s\n", difference.c_str());
        std::abort();
      }
      rest.remove_prefix(std::min(rest.size(), document.size() + 1));
    }
  }
  return 0;
}
