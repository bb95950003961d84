// SPDX-License-Identifier: Apache-2.0
// A producer of the comparison: the same program twice, linked with the simulated runtime or with
// an LTTng tracepoint provider.
#include <time.h>

#include <algorithm>

#include "tests/bench/compare_lttng/event_pool.h"
#include "tests/bench/compare_lttng/producer_loop.h"

namespace neurontrace {
namespace {

constexpr uint64_t kTickNs = 1'000'000;  // events due within it are emitted in one go
constexpr uint64_t kBlock = 64;          // events of one core before the next core's turn

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

ProducerReport Run(EventPool& pool, uint64_t events, double rate) {
  pool.Pace(Now(CLOCK_REALTIME), rate);
  const uint64_t cpu_begin = Now(CLOCK_THREAD_CPUTIME_ID);
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  ProducerReport report;
  for (uint64_t tick = begin; report.emitted < events; tick += kTickNs) {
    const uint64_t now = Now(CLOCK_MONOTONIC);
    if (now < tick) WaitUntil(tick);
    const double elapsed_ns = static_cast<double>(std::max(now, tick) - begin + kTickNs);
    const uint64_t due = std::min(events, static_cast<uint64_t>(elapsed_ns * rate / 1e9));
    for (; report.emitted < due; ++report.emitted) {
      const uint32_t core = static_cast<uint32_t>(report.emitted / kBlock % pool.cores());
      report.taken += static_cast<uint64_t>(compare_emit(&pool.Next(core)));
    }
  }
  report.seconds = static_cast<double>(Now(CLOCK_MONOTONIC) - begin) / 1e9;
  report.cpu_seconds = static_cast<double>(Now(CLOCK_THREAD_CPUTIME_ID) - cpu_begin) / 1e9;
  return report;
}

int Main(int argc, char** argv) {
  ProducerArguments arguments;
  if (!ParseProducerArguments(argc, argv, arguments)) return 2;
  if (compare_begin(arguments.cores, arguments.first_gid) != 0) return 1;
  EventPool pool(arguments.seed, arguments.cores, arguments.first_gid);
  const int exit_code =
      RunCommandsFromStdin([&](uint64_t events, double rate) { return Run(pool, events, rate); });
  compare_end();
  return exit_code;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
