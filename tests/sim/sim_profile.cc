// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_profile.h"

#include <algorithm>

namespace neurontrace {
namespace {

// A fault is there in about half of the seeds, so that each is also seen without the others.
uint32_t Maybe(SimRandom& random, uint32_t most) {
  return random.Chance(500) ? static_cast<uint32_t>(random.Between(1, most)) : 0;
}

// Where no fault is meant to happen, what is made between two drains has to fit into the runtime's
// ring, and what waits for an agent into the tap's buffer.
void MakeRoom(SimWorker::Options& worker) {
  const uint64_t between_ns = worker.drain_ns + 100 * kSimMs;
  worker.runtime_ring_rows =
      std::max<size_t>(worker.runtime_ring_rows, worker.rows_per_second * between_ns / kSimSecond);
  worker.tap_bytes = std::max(worker.tap_bytes, SimWorker::Options().tap_bytes);
}

}  // namespace

SimProfile MakeProfile(uint64_t seed) {
  SimRandom random(seed ^ 0x5eed);
  SimProfile profile;
  profile.seed = seed;
  profile.chaos_ns = random.Between(4, 24) * kSimSecond;
  profile.hosts = static_cast<uint32_t>(random.Between(1, 3));
  profile.workers_per_host = static_cast<uint32_t>(random.Between(1, 3));
  profile.worker.cores = static_cast<uint32_t>(random.Between(1, 3));
  profile.worker.rows_per_second = random.Between(20, 400);
  profile.worker.runtime_ring_rows = random.Between(16, 512);
  profile.worker.drain_ns = random.Between(20, 100) * kSimMs;
  profile.worker.first_id_is_zero = random.Chance(200);
  profile.latency_ns = random.Between(100'000, 20 * kSimMs);
  profile.jitter_ns = random.Chance(500) ? 0 : random.Between(0, 100 * kSimMs);
  if (random.Chance(300)) {
    // Room for a few of the largest documents of each core.
    const size_t documents = profile.worker.cores * 40 * profile.worker.runtime_ring_rows;
    profile.worker.tap_bytes = 4 * documents + (random.Between(8, 64) << 10);
  }
  if (random.Chance(300)) profile.agent.queue_bytes = random.Between(2, 32) << 10;
  if (random.Chance(300)) profile.agent.unacked_max = static_cast<uint32_t>(random.Between(1, 8));
  if (random.Chance(200)) profile.aggregator.budget_bytes = random.Between(1, 16) << 10;
  profile.agent.has_spool = random.Chance(850);
  if (random.Chance(300)) {
    profile.agent.spool.bytes_max = random.Between(128, 512) << 10;
    profile.agent.spool.capture_bytes_max = profile.agent.spool.bytes_max / random.Between(1, 2);
  }
  if (random.Chance(500)) profile.agent.spool.when_full = Spool::WhenFull::kRefuseNewest;
  profile.disk_operation_ns = random.Between(10'000, 20 * kSimMs);
  if (seed % 16 == 0) {
    profile.calm = true;
    MakeRoom(profile.worker);
    return profile;
  }
  profile.agent_crash = Maybe(random, 2'000);
  profile.agent_end = Maybe(random, 1'000);
  profile.host_crash = Maybe(random, 400);
  profile.aggregator_crash = Maybe(random, 2'000);
  profile.block = Maybe(random, 2'000);
  profile.break_calls = Maybe(random, 5'000);
  profile.worker_die = Maybe(random, 1'000);
  profile.worker_exit = Maybe(random, 1'000);
  profile.stall = Maybe(random, 2'000);
  profile.burst = Maybe(random, 5'000);
  profile.disk_fault = Maybe(random, 2'000);
  profile.store_fault = Maybe(random, 1'000);
  profile.slow_store = Maybe(random, 1'000);
  profile.corrupt_per_mille = Maybe(random, 30);
  profile.delete_capture = Maybe(random, 2'000);
  return profile;
}

}  // namespace neurontrace
