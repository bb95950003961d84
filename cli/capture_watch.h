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

struct WatchOptions {
  // What an interrupt does first: stop the capture, or leave it alone and stop watching. The one
  // after that always stops watching.
  bool interrupt_stops = true;
  // Watch only until it records, or will not: a standing capture has no end of its own.
  bool until_begun = false;
  // Called on every change.
  std::function<void(const v1::Capture&)> on_change = {};
};

// Starts and follows captures, and from its making on has interrupts (SIGINT, SIGTERM) end
// what it does in order. To be made before anything speaks to the aggregator: threads that were
// there before would let a signal end the program. One thread.
class CaptureWatch {
 public:
  explicit CaptureWatch(Context& context);
  CaptureWatch(const CaptureWatch&) = delete;
  CaptureWatch& operator=(const CaptureWatch&) = delete;

  // The aggregator's answer; CANCELLED where an interrupt came first.
  grpc::Status Start(const v1::CaptureSpec& spec, v1::Capture& capture);

  // Follows a capture until it has ended, or begun, through restarts of the aggregator; shows what
  // it does on a terminal. OK with `capture` as it is then; CANCELLED when it was interrupted. A
  // capture continues without anybody who watches.
  grpc::Status Follow(v1::Capture& capture, const WatchOptions& options);

  // For what comes behind it, which is interrupted otherwise.
  InterruptWatcher& interrupts() { return interrupts_; }

 private:
  struct Screen;

  // False when an interrupt said to do nothing further.
  bool SetCurrent(grpc::ClientContext* call);
  // Before a further attempt: who answers at once that it cannot is not asked all the time.
  void Pause();
  grpc::Status ReadUntilOver(grpc::ClientContext& call, v1::Capture& capture,
                             const WatchOptions& options, Screen& screen);
  void OnInterrupt(int count);  // on the watcher's thread
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

// What Start was refused with: where the question is wrong, that is wrong usage. Returns the exit
// code.
int FailStart(const Context& context, const grpc::Status& status);

// What Follow could not follow to its end: says why, and how to come back. Returns the exit code.
int FailWatching(const Context& context, const v1::Capture& capture, const grpc::Status& status);

// Workers' ranks as far as the aggregator knows them; none where it does not answer.
WorkerRanks AskRanks(Context& context);

}  // namespace neurontrace::cli
