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

// The client's side of one bidirectional streaming call, with everything that happens told on a
// TaskRunner. Made, used and destroyed on that runner's sequence; the message given to Write stays
// untouched by the caller until on_written. Destroying it cancels the call and waits until gRPC has
// let go of it, which takes no message from the peer.
template <typename Request, typename Response>
class BidiCall {
 public:
  struct Events {
    std::function<void(const Response&)> on_message;
    std::function<void()> on_written;             // the next Write may follow
    std::function<void(absl::Status)> on_closed;  // the last event
    // A message is there, its on_message follows; null, or called on a thread of gRPC's the moment
    // it is so, even when the owner is about to go.
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
    call_->self = call_;
    start(call_->context.get(), call_.get());
    call_->AddHold();  // Writes come from outside gRPC's callbacks; released when reading ends.
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

  // Whom the call goes to, as gRPC names it; known once anything was heard.
  std::string peer() const { return call_->context->peer(); }

  // One at a time: on_written comes between two, or on_closed instead.
  void Write(std::shared_ptr<const Request> request) {
    assert(call_->runner.RunsTasksOnCurrentThread() && request != nullptr);
    const MutexLock lock(call_->mutex);
    if (call_->reading_ended) return;  // on_closed is on its way.
    call_->writing = std::move(request);
    call_->StartWrite(call_->writing.get());
  }

 private:
  struct Call final : Reactor {
    Call(TaskRunner& task_runner, std::unique_ptr<grpc::ClientContext> client_context,
         Events call_events)
        : runner(task_runner), context(std::move(client_context)), events(std::move(call_events)) {}

    // gRPC's threads from here on; `self` keeps the call alive. They never hold the last reference:
    // with it might go the channel, and gRPC 1.51 does not survive a channel that ends on one of
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

    template <typename F>
    void Post(F tell) {
      runner.PostTask([call = self, tell = std::move(tell)] {
        if (call->listening) tell(call->events);
      });
    }

    TaskRunner& runner;
    std::unique_ptr<grpc::ClientContext> context;
    Events events;
    bool listening = true;  // only on the sequence
    Response response;
    std::shared_ptr<const Request> writing;
    std::shared_ptr<Call> self;  // until the owner is gone

    Mutex mutex;
    CondVar done_changed;
    bool reading_ended NT_GUARDED_BY(mutex) = false;  // nothing may be started any more
    bool done NT_GUARDED_BY(mutex) = false;
  };

  std::shared_ptr<Call> call_;
};

}  // namespace neurontrace
