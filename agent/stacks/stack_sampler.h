// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "agent/stacks/stack_reader.h"
#include "lib/base/event_loop.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// Receives what StackSampler has read. On the agent's sequence.
class StacksSink {
 public:
  virtual ~StacksSink() = default;
  virtual void OnStacks(const StacksReading& reading) = 0;
};

// Reads the stacks of workers when the aggregator asks, one worker at a time, on a thread of its
// own: the program may take limits::kStacksProgramNs for each. The sink gets the outcome of every
// worker that was asked for. Lives on the agent's sequence.
// thread: stacks: runs the program that reads stacks, one worker at a time
class StackSampler {
 public:
  struct Counters {
    uint64_t workers = 0;  // read, whatever the outcome
    uint64_t taken = 0;    // of them, with stacks
    uint64_t refused = 0;  // beyond limits::kStacksQueueMax
  };

  // `runner` is the agent's sequence; it and `sink` outlive this. An empty `program`: only the
  // kernel's facts are read.
  StackSampler(std::string program, TaskRunner& runner, StacksSink& sink);
  // Kills the program that is running, and joins the thread.
  ~StackSampler();
  StackSampler(const StackSampler&) = delete;
  StackSampler& operator=(const StackSampler&) = delete;

  // Reads a worker of an order once those before it are read. `is_known`: the agent has it in its
  // inventory; `is_elsewhere`: its process id is of another pid namespace. Neither is read.
  struct Subject {
    WorkerIdentity worker;
    bool is_known = true;
    bool is_elsewhere = false;
  };
  void Collect(const CaptureId& capture_id, uint64_t collection, const Subject& subject);

  const Counters& counters() const { return counters_; }

 private:
  void Answer(StacksReading reading);

  TaskRunner& runner_;
  StacksSink& sink_;
  std::atomic<bool> ending_ = false;
  const StackReader reader_;  // used on the thread
  size_t waiting_ = 0;
  Counters counters_;
  EventLoop loop_;
  std::thread thread_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
