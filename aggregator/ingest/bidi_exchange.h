// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cassert>
#include <functional>
#include <utility>

#include "lib/base/mutex.h"

namespace neurontrace {

// The conversation of one bidirectional call, without the call, so that tests need no gRPC. The
// next action follows from a state that changes under a lock and is carried out without it, because
// gRPC may call back from within. Any thread.
template <typename In, typename Out>
class BidiExchange {
 public:
  using Incoming = In;
  using Outgoing = Out;
  // The call: each function starts one operation, whose completion calls the method named. At most
  // one of each is active. Not used any more after `finish`.
  struct Transport {
    std::function<void(In*)> read;                    // OnReadDone
    std::function<void(const Out*)> write;            // OnWriteDone
    std::function<void(const grpc::Status&)> finish;  // OnDone
  };

  // Called by the transport once for each `write`, in the order of the writes, without mutex_ held.
  // A failed write means that the peer is gone.
  void OnWriteDone(bool ok) {
    Change([this, ok]() NT_REQUIRES(mutex_) {
      assert(writing_);
      writing_ = false;
      if (!ok) cancelled_ = true;
    });
  }
  // Called when the peer has cancelled the call or the connection is lost: at any time, even before
  // the first read and after `finish`.
  void OnCancel() {
    Change([this]() NT_REQUIRES(mutex_) { cancelled_ = true; });
  }

 protected:
  // What to start.
  struct Next {
    bool read = false;  // BeginRead
    bool write = false;
    bool finish = false;
    grpc::Status status;  // to finish with; set by NextStep
  };

  // `transport` must stay usable until its `finish` has been called. No operation starts before the
  // first Change.
  explicit BidiExchange(Transport transport) : transport_(std::move(transport)) {}
  virtual ~BidiExchange() = default;

  // Runs `change` under the lock, then starts what follows from it. Not analysed for thread safety:
  // `change` requires mutex_, which the analysis does not recognise here.
  template <typename Function>
  void Change(Function change) NT_NO_THREAD_SAFETY_ANALYSIS {
    Next next;
    {
      const MutexLock lock(mutex_);
      change();
      next = NextStep();
    }
    Act(next);
  }
  // Returns what to start in the present state; nothing after the exchange has finished.
  Next NextStep() NT_REQUIRES(mutex_) {
    if (finished_) return Next();
    Next next = Plan();
    if (next.finish) next.status = status_;
    return next;
  }
  // Starts the operations without the lock, as gRPC may complete them, and call back, before it
  // returns.
  void Act(const Next& next) NT_EXCLUDES(mutex_) {
    if (next.read) BeginRead();
    if (next.write) transport_.write(&outgoing_);
    if (next.finish) transport_.finish(next.status);
  }

  // Called without mutex_.
  const Transport transport_;
  In incoming_;   // belongs to the transport while reading_
  Out outgoing_;  // belongs to the transport while writing_

  // Guards the state, not the two messages, which a flag assigns to one owner at a time.
  Mutex mutex_;
  // A read is active. Set before BeginRead starts it, cleared by OnReadDone.
  bool reading_ NT_GUARDED_BY(mutex_) = false;
  // A write is active; outgoing_ must not change.
  bool writing_ NT_GUARDED_BY(mutex_) = false;
  // The peer is gone: nothing more is read or written, and the exchange ends.
  bool cancelled_ NT_GUARDED_BY(mutex_) = false;
  // `finish` was called or is about to be. Nothing starts afterwards.
  bool finished_ NT_GUARDED_BY(mutex_) = false;
  grpc::Status status_ NT_GUARDED_BY(mutex_);  // to finish with

 private:
  // Decides what to start, and sets reading_ or writing_ for that, and finished_ if it ends the
  // call, because another thread may plan before Act has run. Moves a message to write into
  // outgoing_. Called under the lock after every change.
  virtual Next Plan() NT_REQUIRES(mutex_) = 0;
  // Arranges for a message to be read, perhaps later, for example when there is room for it.
  virtual void BeginRead() = 0;
};

}  // namespace neurontrace
