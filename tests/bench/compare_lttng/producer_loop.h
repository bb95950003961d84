// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace neurontrace {

// The result of one run of a producer.
struct ProducerReport {
  uint64_t emitted = 0;
  uint64_t taken = 0;  // of these, by a running capture, as far as the producer knows
  double seconds = 0;
  double cpu_seconds = 0;  // of the thread that emits
};

struct ProducerArguments {
  uint64_t seed = 0;
  uint32_t cores = 0;
  uint32_t first_gid = 0;  // worker_gid of core 0
};

// Reads "SEED CORES FIRST_GID"; false, after a word on standard error, when it is anything else.
bool ParseProducerArguments(int argc, char** argv, ProducerArguments& arguments);

// Says "ready", then obeys lines on standard input:
//
//   run EVENTS RATE    emits EVENTS events at RATE a second and answers with one line of JSON
//
// and ends with the input. Returns the program's exit code.
int RunCommandsFromStdin(const std::function<ProducerReport(uint64_t events, double rate)>& run);

}  // namespace neurontrace
