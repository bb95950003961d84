// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_sampler.h"

#include <fmt/format.h>

#include <utility>

#include "lib/trace/stacks_limits.h"

namespace neurontrace {

StackSampler::StackSampler(std::string program, TaskRunner& runner, StacksSink& sink)
    : runner_(runner),
      sink_(sink),
      reader_({.program = std::move(program), .cancelled = &ending_}),
      thread_([this] { loop_.Run(); }) {}

StackSampler::~StackSampler() {
  ending_ = true;
  loop_.PostTask([this] { loop_.Quit(); });
  thread_.join();
}

void StackSampler::Collect(const CaptureId& capture_id, uint64_t collection,
                           const Subject& subject) {
  StacksReading reading;
  WorkerStacks& stacks = reading.stacks;
  stacks = {.capture_id = capture_id, .collection = collection, .worker = subject.worker};
  if (!subject.is_known) {
    stacks.outcome = StacksOutcome::kEnded;
  } else if (subject.is_elsewhere) {
    stacks.outcome = StacksOutcome::kOtherNamespace;
  } else if (waiting_ >= limits::kStacksQueueMax) {
    ++counters_.refused;
    stacks.outcome = StacksOutcome::kFailed;
    stacks.detail = fmt::format("{} workers already wait for their turn", waiting_);
  }
  if (stacks.outcome != StacksOutcome::kUnspecified) {
    if (stacks.detail.empty()) stacks.detail = StackReader::Describe(stacks.outcome, "");
    return sink_.OnStacks(reading);
  }
  ++waiting_;
  auto answer = weak_tasks_.Wrap([this](StacksReading&& answered) { Answer(std::move(answered)); });
  loop_.PostTask([this, capture_id, collection, worker = subject.worker, answer] {
    // What is left when the agent ends is reported by the aggregator as not answered.
    if (ending_) return;
    StacksReading read = reader_.Read(worker);
    read.stacks.capture_id = capture_id;
    read.stacks.collection = collection;
    runner_.PostTask([answer, read = std::move(read)]() mutable { answer(std::move(read)); });
  });
}

void StackSampler::Answer(StacksReading reading) {
  --waiting_;
  ++counters_.workers;
  if (reading.stacks.outcome == StacksOutcome::kTaken) ++counters_.taken;
  sink_.OnStacks(reading);
}

}  // namespace neurontrace
