// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer of EC2's metadata service: a text that is let through is short, and ends
// no header and no line of a log.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/imds_client.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = neurontrace::ImdsText({reinterpret_cast<const char*>(data), size});
  if (!text.ok()) return 0;
  if (text->empty() || text->size() > 255) std::abort();
  if (!std::ranges::all_of(*text, [](char c) { return c > ' ' && c <= '~'; })) std::abort();
  return 0;
}
