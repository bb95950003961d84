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

// The calls of the aggregator that answers of the page are waiting for, so that Stop can end all of
// them. Shared by the gateway and its streams, which outlive a request. Any thread.
class OperatorCalls {
 public:
  // A call's context for as long as the call lasts. Used by one thread at a time, except that any
  // thread may cancel the context.
  class Call {
   public:
    explicit Call(std::shared_ptr<OperatorCalls> calls) : calls_(std::move(calls)) {
      calls_->Add(&context_);
    }
    ~Call() { calls_->Remove(&context_); }
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
  void Stop() {
    const MutexLock lock(mutex_);
    has_stopped_ = true;
    for (grpc::ClientContext* const context : contexts_) context->TryCancel();
  }

 private:
  void Add(grpc::ClientContext* context) {
    const MutexLock lock(mutex_);
    contexts_.insert(context);
    if (has_stopped_) context->TryCancel();
  }
  void Remove(grpc::ClientContext* context) {
    const MutexLock lock(mutex_);
    contexts_.erase(context);
  }

  Mutex mutex_;
  std::set<grpc::ClientContext*> contexts_ NT_GUARDED_BY(mutex_);
  bool has_stopped_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace
