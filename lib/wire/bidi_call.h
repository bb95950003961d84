// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <cassert>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

// The client's side of one bidirectional streaming call; all of its events are delivered on a
// TaskRunner. Made, used and destroyed on that runner's sequence. The caller must not change a
// message given to Write until on_written. The destructor cancels the call and waits until gRPC has
// released it, which needs no message from the peer. No event is delivered after it.
template <typename Request, typename Response>
class BidiCall {
 public:
  // Functions that are called on the runner's sequence, except for on_arrival.
  struct Events {
    std::function<void(const Response&)> on_message;
    std::function<void()> on_written;             // the next Write may follow
    std::function<void(absl::Status)> on_closed;  // the last event
    // Called at once on a thread of gRPC when a message has arrived, before its on_message is
    // posted; may be null. It may be called while the owner is being destroyed.
    std::function<void()> on_arrival = {};
  };
  using Reactor = grpc::ClientBidiReactor<Request, Response>;
  // Binds the reactor to a method of the service: async()->Method(context, reactor).
  using Start = std::function<void(grpc::ClientContext*, Reactor*)>;

  // `context` may carry metadata.
  BidiCall(TaskRunner& runner, std::unique_ptr<grpc::ClientContext> context, const Start& start,
           Events events)
      : call_(std::make_shared<Call>(runner, std::move(context), std::move(events))) {
    assert(runner.RunsTasksOnCurrentThread());
    // gRPC refers to the reactor until OnDone; this reference keeps it alive until then, whatever
    // the tasks hold.
    call_->self = call_;
    start(call_->context.get(), call_.get());
    // Writes come from outside gRPC's callbacks, so the call must be held open; the hold is
    // released when reading ends.
    call_->AddHold();
    call_->StartRead(&call_->response);
    call_->StartCall();
  }
  BidiCall(const BidiCall&) = delete;
  BidiCall& operator=(const BidiCall&) = delete;

  ~BidiCall() {
    assert(call_->runner.RunsTasksOnCurrentThread());
    call_->listening = false;
    call_->context->TryCancel();
    {
      const MutexLock lock(call_->mutex);
      call_->done_changed.Wait(call_->mutex,
                               [this]() NT_REQUIRES(call_->mutex) { return call_->done; });
    }
    call_->self.reset();
  }

  // Returns the address of the server as gRPC writes it; known once anything was received.
  std::string peer() const { return call_->context->peer(); }

  // Sends a message. One at a time: on_written comes between two, or on_closed instead.
  void Write(std::shared_ptr<const Request> request) {
    assert(call_->runner.RunsTasksOnCurrentThread() && request != nullptr);
    const MutexLock lock(call_->mutex);
    // on_closed has been posted or will be; gRPC does not allow a write after the hold is removed.
    if (call_->reading_ended) return;
    call_->writing = std::move(request);
    call_->StartWrite(call_->writing.get());
  }

 private:
  struct Call final : Reactor {
    Call(TaskRunner& task_runner, std::unique_ptr<grpc::ClientContext> client_context,
         Events call_events)
        : runner(task_runner), context(std::move(client_context)), events(std::move(call_events)) {}

    // gRPC's threads run these callbacks; `self` keeps the call alive. They never release the last
    // reference: that could destroy the channel, and gRPC 1.51 crashes if a channel ends on one of
    // its own threads.
    void OnReadDone(bool ok) override {
      if (!ok) {
        {
          const MutexLock lock(mutex);
          reading_ended = true;
        }
        this->RemoveHold();  // OnDone follows.
        return;
      }
      if (events.on_arrival) events.on_arrival();
      auto message = std::make_shared<Response>();
      message->Swap(&response);
      Post([message](const Events& e) { e.on_message(*message); });
      this->StartRead(&response);
    }
    void OnWriteDone(bool ok) override {
      if (!ok) return;  // OnDone follows.
      Post([](const Events& e) { e.on_written(); });
    }
    void OnDone(const grpc::Status& status) override {
      Post([status = ToAbslStatus(status)](const Events& e) { e.on_closed(status); });
      const MutexLock lock(mutex);
      done = true;
      done_changed.NotifyAll();
    }

    // Calls `report` with the events on the sequence, unless the owner is gone by then.
    template <typename F>
    void Post(F report) {
      runner.PostTask([call = self, report = std::move(report)] {
        if (call->listening) report(call->events);
      });
    }

    TaskRunner& runner;
    std::unique_ptr<grpc::ClientContext> context;
    Events events;
    bool listening = true;  // only on the sequence
    Response response;
    std::shared_ptr<const Request> writing;
    std::shared_ptr<Call> self;  // until the owner is destroyed

    Mutex mutex;
    CondVar done_changed;
    bool reading_ended NT_GUARDED_BY(mutex) = false;  // nothing may be started any more
    bool done NT_GUARDED_BY(mutex) = false;
  };

  std::shared_ptr<Call> call_;
};

}  // namespace neurontrace
