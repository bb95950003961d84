// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/compare_lttng/producer_loop.h"

#include <cstdio>
#include <cstdlib>

namespace neurontrace {
namespace {

constexpr uint64_t kCoresMax = 64;

}  // namespace

bool ParseProducerArguments(int argc, char** argv, ProducerArguments& arguments) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SEED CORES FIRST_GID\n", argv[0]);
    return false;
  }
  arguments.seed = std::strtoull(argv[1], nullptr, 10);
  const uint64_t cores = std::strtoull(argv[2], nullptr, 10);
  if (cores == 0 || cores > kCoresMax) {
    std::fprintf(stderr, "CORES: 1 to %lu\n", kCoresMax);
    return false;
  }
  arguments.cores = static_cast<uint32_t>(cores);
  arguments.first_gid = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  return true;
}

int RunCommandsFromStdin(const std::function<ProducerReport(uint64_t events, double rate)>& run) {
  std::puts("ready");
  std::fflush(stdout);
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    uint64_t events = 0;
    double rate = 0;
    if (std::sscanf(line, "run %lu %lf", &events, &rate) != 2 || rate <= 0) {
      std::fprintf(stderr, "not understood: %s", line);
      return 2;
    }
    const ProducerReport report = run(events, rate);
    std::printf("{\"emitted\": %lu, \"taken\": %lu, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
                report.emitted, report.taken, report.seconds, report.cpu_seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace neurontrace
