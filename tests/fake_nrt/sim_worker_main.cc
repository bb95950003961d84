// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "tests/fake_nrt/sim_options.h"
#include "tests/fake_nrt/sim_worker.h"

int main(int argc, char** argv) {
  const neurontrace::SimOptions options = neurontrace::SimOptions::FromCommandLine(argc, argv);
  // Blocked before any thread exists, so that only the descriptor reports them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return neurontrace::NrtWorker(options).Run(signalfd(-1, &signals, SFD_CLOEXEC));
}
