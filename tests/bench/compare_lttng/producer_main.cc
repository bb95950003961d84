// SPDX-License-Identifier: Apache-2.0
// A producer of the comparison: the same program twice, linked with the simulated runtime or with
// an LTTng tracepoint provider. Says "ready", then obeys lines on standard input:
//
//   run EVENTS RATE    emits EVENTS events at RATE a second and answers with one line of JSON
//
// and ends with the input.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/bench/compare_lttng/event_pool.h"

namespace neurontrace {
namespace {

constexpr uint64_t kTickNs = 1'000'000;  // events due within it are emitted in one go
constexpr uint64_t kBlock = 64;          // events of one core before the next core's turn
constexpr uint32_t kCoresMax = 64;

uint64_t Now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void WaitUntil(uint64_t monotonic_ns) {
  const timespec time = {.tv_sec = static_cast<time_t>(monotonic_ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(monotonic_ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);  // tidy: allow(sleep) the rate
}

void Run(EventPool& pool, uint64_t events, double rate) {
  pool.Pace(Now(CLOCK_REALTIME), rate);
  const uint64_t cpu_begin = Now(CLOCK_THREAD_CPUTIME_ID);
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  uint64_t emitted = 0;
  uint64_t taken = 0;
  for (uint64_t tick = begin; emitted < events; tick += kTickNs) {
    const uint64_t now = Now(CLOCK_MONOTONIC);
    if (now < tick) WaitUntil(tick);
    const double elapsed_ns = static_cast<double>(std::max(now, tick) - begin + kTickNs);
    const uint64_t due = std::min(events, static_cast<uint64_t>(elapsed_ns * rate / 1e9));
    for (; emitted < due; ++emitted) {
      const uint32_t core = static_cast<uint32_t>(emitted / kBlock % pool.cores());
      taken += static_cast<uint64_t>(compare_emit(&pool.Next(core)));
    }
  }
  const double seconds = static_cast<double>(Now(CLOCK_MONOTONIC) - begin) / 1e9;
  const double cpu_seconds = static_cast<double>(Now(CLOCK_THREAD_CPUTIME_ID) - cpu_begin) / 1e9;
  std::printf("{\"emitted\": %lu, \"taken\": %lu, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
              emitted, taken, seconds, cpu_seconds);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SEED CORES\n", argv[0]);
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const uint64_t cores = std::strtoull(argv[2], nullptr, 10);
  if (cores == 0 || cores > kCoresMax) {
    std::fprintf(stderr, "CORES: 1 to %u\n", kCoresMax);
    return 2;
  }
  if (compare_begin(static_cast<uint32_t>(cores)) != 0) return 1;
  EventPool pool(seed, static_cast<uint32_t>(cores));
  std::puts("ready");
  std::fflush(stdout);
  uint64_t events = 0;
  double rate = 0;
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::sscanf(line, "run %lu %lf", &events, &rate) != 2 || rate <= 0) {
      std::fprintf(stderr, "not understood: %s", line);
      return 2;
    }
    Run(pool, events, rate);
  }
  compare_end();
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
