// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "agent/source/neuron/tap_source.h"

namespace neurontrace {

// For fuzzers: a source that an input decides alone, on the caller's thread. Of the machine it has
// no clock, no processor time and no thread.
inline TapSource::Options FuzzedTapOptions(std::function<HostInstant()> now) {
  return {.agent_id = "agent",
          .instance_id = "i-1",
          .boot_id = "boot",
          .read_host_instant = std::move(now),
          .read_thread_cpu_ns = [] { return uint64_t{0}; },
          .closer_threads = 0};
}

}  // namespace neurontrace
