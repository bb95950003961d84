// SPDX-License-Identifier: Apache-2.0
// Any bytes as /proc/stat and as /proc/meminfo: no crash, and what is accepted keeps to what the
// header promises, also as the two readings of one interval.
#include <cstdlib>

#include "agent/source/host/proc_files.h"
#include "lib/trace/limits.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

bool IsPercent(double value) { return value >= 0 && value <= 100; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto cpus = neurontrace::ParseCpuTimes(text); cpus.ok()) {
    Check(!cpus->empty() && cpus->size() <= neurontrace::limits::kHostCpusMax + 1);
    for (const auto& before : *cpus) {
      Check(before.idle <= before.total);
      const auto share = neurontrace::ShareBetween(before, cpus->back());
      if (share.known) Check(IsPercent(share.percent));
    }
  }
  if (const auto memory = neurontrace::ParseMemory(text); memory.ok()) {
    Check(memory->used_bytes <= memory->total_bytes);
    Check(IsPercent(neurontrace::PercentUsed(*memory)));
  }
  return 0;
}
