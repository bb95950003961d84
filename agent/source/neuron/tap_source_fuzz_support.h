// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "agent/source/neuron/tap_source.h"

namespace neurontrace {

// For fuzzers: options of a source that depends on the fuzzer's input alone and runs on the
// caller's thread: no clock, processor time or further thread of the machine.
inline TapSource::Options FuzzedTapOptions(std::function<HostInstant()> now) {
  return {.agent_id = "agent",
          .instance_id = "i-1",
          .boot_id = "boot",
          .read_host_instant = std::move(now),
          .read_thread_cpu_ns = [] { return uint64_t{0}; },
          .closer_threads = 0};
}

}  // namespace neurontrace
