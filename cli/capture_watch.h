// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/delivery_wait.h"
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

// Starts and follows captures, and handles SIGINT and SIGTERM meanwhile: the first interrupt stops
// the capture and Follow waits for its data, the second ends the work while the capture finishes by
// itself. Constructed before anything connects to the aggregator, because a signal would end the
// program on threads that exist before it. One thread.
class CaptureWatch {
 public:
  explicit CaptureWatch(Context& context);
  CaptureWatch(const CaptureWatch&) = delete;
  CaptureWatch& operator=(const CaptureWatch&) = delete;

  // Starts a capture. Returns the aggregator's status; CANCELLED if an interrupt came first, in
  // which case the capture may have started. No retries: a repeated call would start a second one.
  grpc::Status Start(const v1::CaptureSpec& spec, v1::Capture& capture);

  // Follows a capture until it has ended, or begun, through restarts of the aggregator, and shows
  // it on a terminal. Returns OK with the final `capture`; CANCELLED after an interrupt;
  // UNAVAILABLE or DEADLINE_EXCEEDED after 30 s without progress; otherwise the aggregator's
  // refusal. The capture itself continues in any case.
  grpc::Status Follow(v1::Capture& capture, const WatchOptions& options);

  // Returns the watcher, for an export that follows; it redirects interrupts to itself.
  InterruptWatcher& interrupts() { return interrupts_; }

 private:
  // The region of the terminal that shows the capture.
  struct Screen;

  // Sets the call that an interrupt cancels. Returns false if an interrupt has ended the work.
  bool SetCurrent(grpc::ClientContext* call);
  // Waits 200 ms before a further attempt, because an aggregator that refuses at once must not be
  // called in a tight loop. An interrupt ends the wait.
  void Pause();
  // Reads one call's messages into `capture` until it is over or the call fails. Returns the call's
  // status, CANCELLED if the capture is over.
  grpc::Status ReadUntilOver(grpc::ClientContext& call, v1::Capture& capture,
                             const WatchOptions& options, Screen& screen);
  // Prints on stderr that the aggregator's store takes no data, each minute while that lasts, and
  // that it takes data again.
  void ReportStore(const v1::Capture& capture, Screen& screen);
  // Prints on stderr which instances a stopping capture waits for, once for each change, and with
  // the first line how the wait ends. Prints nothing if a terminal shows the workers.
  void ReportWait(const v1::Capture& capture, const WatchOptions& options, const Screen& screen);
  // Called on the watcher's thread with the number of the interrupt. Makes a call of up to the
  // connection timeout, without the lock.
  void OnInterrupt(int count);
  // Returns the last line of the screen: the effect of the next interrupt.
  std::string Hint(const WatchOptions& options);

  // Must outlive the watch.
  Context& context_;
  // The aggregator's time of the last message about its store; 0: the store takes data. Used by
  // Follow only.
  uint64_t store_reported_ns_ = 0;
  DeliveryWait wait_;  // used by Follow only
  Mutex mutex_;
  // Signalled when `abandoned_` is set.
  CondVar abandoning_;
  // The call to cancel. Reset before the call is destroyed.
  grpc::ClientContext* current_ NT_GUARDED_BY(mutex_) = nullptr;
  std::string stoppable_ NT_GUARDED_BY(mutex_);  // the capture that an interrupt stops
  // An interrupt has come: changes only the hint.
  bool interrupted_ NT_GUARDED_BY(mutex_) = false;
  // No further call is made.
  bool abandoned_ NT_GUARDED_BY(mutex_) = false;
  // Last member: its thread uses those above, and ends before they are destroyed.
  InterruptWatcher interrupts_;
};

// Prints why Start was refused; a wrong request counts as wrong usage. Returns the exit code.
int FailStart(const Context& context, const grpc::Status& status);

// Prints why Follow ended early, and how to resume watching. Returns the exit code.
int FailWatching(const Context& context, const v1::Capture& capture, const grpc::Status& status);

// Returns workers' ranks as far as the aggregator knows them; none if it does not answer.
WorkerRanks FetchRanks(Context& context);

}  // namespace neurontrace::cli
