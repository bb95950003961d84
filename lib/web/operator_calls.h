// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {

// Who makes calls, if the connection to the service does not say so already.
class WebCaller {
 public:
  virtual ~WebCaller() = default;
  // Adds to a call what its server needs to know who makes it. Any thread.
  virtual void Identify(grpc::ClientContext& context) const = 0;
};

// The calls of the aggregator that answers of the page are waiting for, so that Stop can end all of
// them. Shared by the gateway and its streams, which outlive a request. Any thread.
class OperatorCalls {
 public:
  // Calls with the identity of the connection.
  OperatorCalls() : running_(std::make_shared<Running>()) {}
  // Calls of `caller`, which end when those of `other` do.
  OperatorCalls(const OperatorCalls& other, std::shared_ptr<const WebCaller> caller)
      : running_(other.running_), caller_(std::move(caller)) {}

  // A call's context for as long as the call lasts. Used by one thread at a time, except that any
  // thread may cancel the context.
  class Call {
   public:
    explicit Call(std::shared_ptr<OperatorCalls> calls) : calls_(std::move(calls)) {
      if (calls_->caller_ != nullptr) calls_->caller_->Identify(context_);
      calls_->running_->Add(&context_);
    }
    ~Call() { calls_->running_->Remove(&context_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    grpc::ClientContext* context() { return &context_; }
    // Limits calls that answer at once; streams have no such limit.
    Call& WithDeadline() {
      context_.set_deadline(std::chrono::system_clock::now() +
                            std::chrono::milliseconds(limits::kWebCallMsMax));
      return *this;
    }

   private:
    const std::shared_ptr<OperatorCalls> calls_;
    grpc::ClientContext context_;
  };

  // Ends the calls, and every later one at once.
  void Stop() { running_->Stop(); }

 private:
  // Shared by the calls of all callers.
  class Running {
   public:
    void Stop() {
      const MutexLock lock(mutex_);
      has_stopped_ = true;
      for (grpc::ClientContext* const context : contexts_) context->TryCancel();
    }
    void Add(grpc::ClientContext* context) {
      const MutexLock lock(mutex_);
      contexts_.insert(context);
      if (has_stopped_) context->TryCancel();
    }
    void Remove(grpc::ClientContext* context) {
      const MutexLock lock(mutex_);
      contexts_.erase(context);
    }

   private:
    Mutex mutex_;
    std::set<grpc::ClientContext*> contexts_ NT_GUARDED_BY(mutex_);
    bool has_stopped_ NT_GUARDED_BY(mutex_) = false;
  };

  const std::shared_ptr<Running> running_;
  const std::shared_ptr<const WebCaller> caller_;  // null: the connection's own identity
};

}  // namespace neurontrace
