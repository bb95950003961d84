// SPDX-License-Identifier: Apache-2.0
#include "lib/base/stall_watch.h"

#include <mutex>
#include <utility>

namespace neurontrace {

struct StallWatch::State {
  State(Options of, std::function<void()> what) : options(of), end(std::move(what)) {}

  const Options options;
  const std::function<void()> end;
  std::mutex mutex;
  // Guarded by it.
  uint64_t units = 0;  // in this period
  bool over = false;   // the watch is gone
  bool stalled = false;
};

StallWatch::StallWatch(TaskRunner& runner, Options options, std::function<void()> end)
    : state_(std::make_shared<State>(options, std::move(end))) {
  CheckLater(runner, state_);
}

StallWatch::~StallWatch() {
  const std::lock_guard lock(state_->mutex);  // an `end` under way is waited for
  state_->over = true;
}

void StallWatch::Progress(uint64_t units) {
  const std::lock_guard lock(state_->mutex);
  state_->units += units;
}

bool StallWatch::stalled() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stalled;
}

void StallWatch::CheckLater(TaskRunner& runner, const std::shared_ptr<State>& state) {
  runner.PostDelayedTask([&runner, state] { Check(runner, state); }, state->options.period_ns);
}

void StallWatch::Check(TaskRunner& runner, const std::shared_ptr<State>& state) {
  {
    const std::lock_guard lock(state->mutex);
    if (state->over) return;
    if (std::exchange(state->units, 0) < state->options.least) {
      state->stalled = true;
      state->end();
      return;
    }
  }
  CheckLater(runner, state);
}

}  // namespace neurontrace
