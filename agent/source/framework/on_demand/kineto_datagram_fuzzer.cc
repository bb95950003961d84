// SPDX-License-Identifier: Apache-2.0
// Any bytes as a datagram of a worker: parsed without a crash; what is accepted is within the
// limits, and its size accounts for every byte.
#include <cstdint>
#include <string_view>
#include <variant>

#include "agent/source/framework/on_demand/kineto_messages.h"
#include "lib/base/fuzz_input.h"
#include "lib/trace/framework_limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const auto parsed = ParseKinetoDatagram({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  CheckPromise(size <= limits::kKinetoDatagramBytesMax, "a datagram beyond the limit is refused");
  const auto* const request = std::get_if<KinetoRequest>(&*parsed);
  const size_t pids = request == nullptr ? 0 : request->pids.size();
  CheckPromise(pids <= limits::kKinetoPidsMax, "processes beyond the limit are refused");
  CheckPromise(size == kKinetoHeaderBytes + 16 + 4 * pids, "no byte is ignored");
  return 0;
}
