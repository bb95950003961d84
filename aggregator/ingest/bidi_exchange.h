// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cassert>
#include <functional>
#include <memory>
#include <utility>

#include "lib/base/mutex.h"

namespace neurontrace {

// What is said in one bidirectional call, without the call: what to do next follows from a state
// that changes under a lock, and is done without the lock. Any thread.
template <typename In, typename Out>
class BidiExchange {
 public:
  using Incoming = In;
  using Outgoing = Out;
  // The call: each begins one thing, whose end comes by the method named; one of each at a time.
  // Not used any more once `finish` was called.
  struct Transport {
    std::function<void(In*)> read;                    // OnReadDone
    std::function<void(const Out*)> write;            // OnWriteDone
    std::function<void(const grpc::Status&)> finish;  // OnDone
  };

  void OnWriteDone(bool ok) {
    Change([this, ok]() NT_REQUIRES(mutex_) {
      assert(writing_);
      writing_ = false;
      if (!ok) cancelled_ = true;
    });
  }
  void OnCancel() {
    Change([this]() NT_REQUIRES(mutex_) { cancelled_ = true; });
  }

 protected:
  struct Next {
    bool read = false;  // BeginRead
    bool write = false;
    bool finish = false;
    grpc::Status status;  // to finish with; NextStep sets it
  };

  explicit BidiExchange(Transport transport) : transport_(std::move(transport)) {}
  virtual ~BidiExchange() = default;

  // Runs `change` with the lock, and begins what follows from it. Not analysed: `change` says that
  // it requires mutex_, which is not the name of the mutex in here.
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
  Next NextStep() NT_REQUIRES(mutex_) {
    if (finished_) return Next();
    Next next = Plan();
    if (next.finish) next.status = status_;
    return next;
  }
  void Act(const Next& next) NT_EXCLUDES(mutex_) {
    if (next.read) BeginRead();
    if (next.write) transport_.write(&outgoing_);
    if (next.finish) transport_.finish(next.status);
  }

  const Transport transport_;
  In incoming_;   // the transport's while reading_
  Out outgoing_;  // the transport's while writing_

  Mutex mutex_;
  bool reading_ NT_GUARDED_BY(mutex_) = false;
  bool writing_ NT_GUARDED_BY(mutex_) = false;
  bool cancelled_ NT_GUARDED_BY(mutex_) = false;
  bool finished_ NT_GUARDED_BY(mutex_) = false;
  grpc::Status status_ NT_GUARDED_BY(mutex_);  // to finish with

 private:
  // Decides what to begin, and sets the flags of the state by it.
  virtual Next Plan() NT_REQUIRES(mutex_) = 0;
  virtual void BeginRead() = 0;
};

// A call of gRPC that carries the messages of an exchange. Deletes itself when gRPC says OnDone.
template <typename Exchange>
class ExchangeCall final
    : public grpc::ServerBidiReactor<typename Exchange::Incoming, typename Exchange::Outgoing> {
 public:
  // `arguments` are those of the exchange before its transport.
  template <typename... Arguments>
  static ExchangeCall* Begin(Arguments&&... arguments) {
    auto* const call = new ExchangeCall(std::forward<Arguments>(arguments)...);
    call->exchange_->Begin();
    return call;
  }

  void OnReadDone(bool ok) override { exchange_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { exchange_->OnWriteDone(ok); }
  void OnCancel() override { exchange_->OnCancel(); }
  void OnDone() override {
    exchange_->OnDone();
    delete this;
  }

 private:
  template <typename... Arguments>
  explicit ExchangeCall(Arguments&&... arguments)
      : exchange_(std::make_shared<Exchange>(
            std::forward<Arguments>(arguments)...,
            typename Exchange::Transport{
                .read = [this](typename Exchange::Incoming* message) { this->StartRead(message); },
                .write =
                    [this](const typename Exchange::Outgoing* message) {
                      this->StartWrite(message);
                    },
                .finish = [this](const grpc::Status& status) { this->Finish(status); }})) {}

  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace neurontrace
