// SPDX-License-Identifier: Apache-2.0
// The producer of documents that were written in advance; see replay_runtime.h.
#include <cstdio>

#include "tests/bench/compare_lttng/producer_loop.h"
#include "tests/bench/compare_lttng/replay.h"
#include "tests/fake_nrt/nrt_api.h"

int main(int argc, char** argv) {
  neurontrace::ProducerArguments arguments;
  if (!neurontrace::ParseProducerArguments(argc, argv, arguments)) return 2;
  compare_replay_begin(arguments.seed, arguments.cores, arguments.first_gid);
  if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS) {
    std::fputs("nrt_init failed\n", stderr);
    return 1;
  }
  const int exit_code = neurontrace::RunCommandsFromStdin([](uint64_t events, double rate) {
    neurontrace::ProducerReport report = {.emitted = events};
    report.seconds = compare_replay_run(events, rate, &report.taken);
    return report;
  });
  nrt_close();
  return exit_code;
}
