// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tests/sim/sim_agent.h"
#include "tests/sim/sim_aggregator.h"
#include "tests/sim/sim_worker.h"

namespace neurontrace {

// What one seed stands for: the size of the world and how unkind it is. Chances are of a million,
// for each step of 10 ms.
struct SimProfile {
  uint64_t seed = 1;
  uint64_t chaos_ns = 20 * kSimSecond;
  uint32_t hosts = 2;
  uint32_t workers_per_host = 2;
  SimWorker::Options worker;
  SimAgent::Options agent;
  SimAggregator::Options aggregator;
  uint64_t latency_ns = 200'000;
  uint64_t jitter_ns = 1'000'000;
  uint64_t disk_operation_ns = 500'000;

  uint32_t agent_crash = 0;
  uint32_t agent_end = 0;
  uint32_t host_crash = 0;
  uint32_t aggregator_crash = 0;
  uint32_t block = 0;
  uint32_t break_calls = 0;
  uint32_t worker_die = 0;
  uint32_t worker_exit = 0;
  uint32_t stall = 0;
  uint32_t burst = 0;
  uint32_t disk_fault = 0;  // of a host's disk
  uint32_t store_fault = 0;
  uint32_t slow_store = 0;
  uint32_t corrupt_per_mille = 0;  // of envelopes
  uint32_t start_capture = 3'000;
  uint32_t stop_capture = 2'000;
  uint32_t delete_capture = 0;

  // No faults at all: then every capture has to be complete.
  bool calm = false;
};

SimProfile MakeProfile(uint64_t seed);

}  // namespace neurontrace
