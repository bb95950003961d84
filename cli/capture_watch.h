// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/interrupt_watcher.h"
#include "cli/worker_ranks.h"
#include "lib/base/mutex.h"

namespace neurontrace::cli {

// How Follow behaves.
struct WatchOptions {
  // The effect of the first interrupt: stop the capture, or only stop watching. The second one
  // always stops watching.
  bool interrupt_stops = true;
  // Watches only until the capture records or fails to: a standing capture has no end of its own.
  bool until_begun = false;
  // Called at every change, on the thread of Follow.
  std::function<void(const v1::Capture&)> on_change = {};
};

// Starts and follows captures. From its construction on interrupts (SIGINT, SIGTERM) end its work
// in order. Constructed before anything connects to the aggregator: on threads that exist before it
// a signal would end the program. One thread.
class CaptureWatch {
 public:
  explicit CaptureWatch(Context& context);
  CaptureWatch(const CaptureWatch&) = delete;
  CaptureWatch& operator=(const CaptureWatch&) = delete;

  // Starts a capture. Returns the aggregator's answer, or CANCELLED if an interrupt came first.
  grpc::Status Start(const v1::CaptureSpec& spec, v1::Capture& capture);

  // Follows a capture until it has ended, or begun, through restarts of the aggregator, and shows
  // it on a terminal. Returns OK with the final `capture`, or CANCELLED after an interrupt. A
  // capture continues without anybody watching it.
  grpc::Status Follow(v1::Capture& capture, const WatchOptions& options);

  // For later work, which redirects interrupts to itself.
  InterruptWatcher& interrupts() { return interrupts_; }

 private:
  // The region of the terminal that shows the capture.
  struct Screen;

  // Sets the call that an interrupt cancels. Returns false if an interrupt has ended the work.
  bool SetCurrent(grpc::ClientContext* call);
  // Waits before a further attempt: an aggregator that refuses at once must not be called in a
  // loop.
  void Pause();
  grpc::Status ReadUntilOver(grpc::ClientContext& call, v1::Capture& capture,
                             const WatchOptions& options, Screen& screen);
  // Called on the watcher's thread.
  void OnInterrupt(int count);
  std::string Hint(const WatchOptions& options);

  Context& context_;
  Mutex mutex_;
  CondVar abandoning_;
  grpc::ClientContext* current_ NT_GUARDED_BY(mutex_) = nullptr;
  std::string stoppable_ NT_GUARDED_BY(mutex_);  // the capture that an interrupt stops
  bool interrupted_ NT_GUARDED_BY(mutex_) = false;
  bool abandoned_ NT_GUARDED_BY(mutex_) = false;
  InterruptWatcher interrupts_;
};

// Prints why Start was refused; a wrong request counts as wrong usage. Returns the exit code.
int FailStart(const Context& context, const grpc::Status& status);

// Prints why Follow ended early, and how to resume watching. Returns the exit code.
int FailWatching(const Context& context, const v1::Capture& capture, const grpc::Status& status);

// Returns workers' ranks as far as the aggregator knows them; none if it does not answer.
WorkerRanks AskRanks(Context& context);

}  // namespace neurontrace::cli
