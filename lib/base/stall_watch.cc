// SPDX-License-Identifier: Apache-2.0
#include "lib/base/stall_watch.h"

#include <utility>

#include "lib/base/mutex.h"

namespace neurontrace {

// Shared with the posted checks, which the runner may still hold after the watch is gone.
struct StallWatch::State {
  State(Options of, std::function<void()> what) : options(of), end(std::move(what)) {}

  const Options options;
  const std::function<void()> end;
  Mutex mutex;
  uint64_t units NT_GUARDED_BY(mutex) = 0;  // in this period
  bool over NT_GUARDED_BY(mutex) = false;   // the watch is gone
  bool stalled NT_GUARDED_BY(mutex) = false;
};

StallWatch::StallWatch(TaskRunner& runner, Options options, std::function<void()> end)
    : state_(std::make_shared<State>(options, std::move(end))) {
  CheckLater(runner, state_);
}

StallWatch::~StallWatch() {
  // `end` runs under the mutex, so the destructor waits for one that is under way; `end` may refer
  // to objects of the caller.
  const MutexLock lock(state_->mutex);
  state_->over = true;
}

void StallWatch::Progress(uint64_t units) {
  const MutexLock lock(state_->mutex);
  state_->units += units;
}

bool StallWatch::stalled() const {
  const MutexLock lock(state_->mutex);
  return state_->stalled;
}

void StallWatch::CheckLater(TaskRunner& runner, const std::shared_ptr<State>& state) {
  runner.PostDelayedTask([&runner, state] { Check(runner, state); }, state->options.period_ns);
}

void StallWatch::Check(TaskRunner& runner, const std::shared_ptr<State>& state) {
  {
    const MutexLock lock(state->mutex);
    if (state->over) return;
    if (std::exchange(state->units, 0) < state->options.least) {
      state->stalled = true;
      state->end();
      return;
    }
  }
  // Posted without the mutex: the runner takes a lock of its own.
  CheckLater(runner, state);
}

}  // namespace neurontrace
