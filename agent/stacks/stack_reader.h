// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/source/neuron/tap/peer_identity.h"
#include "lib/trace/stacks_limits.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// What was read of one worker. A plain value.
struct StacksReading {
  WorkerStacks stacks;  // without capture and collection
  // What the program printed, whole: the file that the capture keeps. Empty if it is not kept.
  std::string raw;
};

// Reads the stacks of one process: its threads as the kernel shows them, and, if a program is
// configured, what `PROGRAM dump --json --nonblocking --pid PID` prints. The worker is neither
// stopped nor sent a signal: py-spy without --nonblocking attaches by ptrace, and a thread in an
// uninterruptible sleep, which hangs are made of, would be left stopped if py-spy had to be killed.
// Local variables are never asked for. One thread at a time; blocks.
class StackReader {
 public:
  struct Options {
    std::string program;         // absolute path; empty: none
    std::string proc = "/proc";  // another directory in tests
    uint64_t time_ns = limits::kStacksProgramNs;
    const std::atomic<bool>* cancelled = nullptr;  // ends a program early; may be null
  };
  explicit StackReader(Options options) : options_(std::move(options)), proc_(options_.proc) {}

  // Never fails: the outcome says what is missing. A process is read only while it has the start
  // time of the worker, so that a number that was given to another process is not mistaken for it.
  StacksReading Read(const WorkerIdentity& worker) const;

  // Returns a sentence about the outcome, with the fix. `program` is the configured one.
  static std::string Describe(StacksOutcome outcome, const std::string& program);

 private:
  bool IsAlive(const WorkerIdentity& worker) const {
    return proc_.Lives(worker.pid, worker.start_time_ticks);
  }
  void ReadKernelThreads(const WorkerIdentity& worker, WorkerStacks& stacks) const;
  // Runs the program. Sets outcome, detail and threads.
  void RunProgram(const WorkerIdentity& worker, StacksReading& reading) const;

  const Options options_;
  const ProcFiles proc_;
};

}  // namespace neurontrace
