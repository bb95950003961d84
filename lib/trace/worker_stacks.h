// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/ids.h"

// Stacks of workers as agents read them. Plain values; sizes are limited by stacks_limits.h.
namespace neurontrace {

// The result of reading one worker. Values are on the wire: never change one.
enum class StacksOutcome : uint8_t {
  kUnspecified = 0,
  kTaken = 1,
  kNoProgram = 2,
  kNotInstalled = 3,
  kNotPermitted = 4,
  kTimedOut = 5,
  kTooLarge = 6,
  kOtherNamespace = 7,
  kNotPython = 8,
  kFailed = 9,
  kMalformed = 10,
  kEnded = 11,
  kNoAnswer = 12,
};
inline constexpr StacksOutcome kStacksOutcomeMax = StacksOutcome::kNoAnswer;

struct StackFrame {
  std::string function;
  std::string file;  // without its directory
  uint32_t line = 0;
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

struct StackThread {
  std::string name;
  uint64_t os_thread_id = 0;  // 0: unknown
  bool holds_gil = false;
  std::vector<StackFrame> frames;  // the outermost first
  friend bool operator==(const StackThread&, const StackThread&) = default;
};

// A thread as /proc/PID/task shows it.
struct KernelThread {
  static constexpr int64_t kNoCall = -1;  // running, or in no system call
  static constexpr int64_t kUnreadable = -2;
  uint64_t id = 0;
  std::string name;
  std::string state;                  // one letter
  std::string wait_channel;           // empty: none, or not shown to the agent
  int64_t system_call = kUnreadable;  // its number
  friend bool operator==(const KernelThread&, const KernelThread&) = default;
};

// An order of the aggregator to read workers.
struct StacksOrder {
  CaptureId capture_id;
  uint64_t collection = 0;
  std::vector<WorkerIdentity> workers;
};

// The answer for one worker.
struct WorkerStacks {
  CaptureId capture_id;
  uint64_t collection = 0;
  WorkerIdentity worker;
  StacksOutcome outcome = StacksOutcome::kUnspecified;
  std::string detail;  // for people
  std::vector<StackThread> threads;
  uint64_t left_out = 0;  // threads and frames beyond a limit
  std::vector<KernelThread> kernel_threads;
  uint64_t kernel_threads_left_out = 0;
};

}  // namespace neurontrace
