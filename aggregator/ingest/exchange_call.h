// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

namespace neurontrace {

// A gRPC call that carries the messages of an exchange. Deletes itself in OnDone, the last callback
// of gRPC. The exchange may live longer, until the writer has answered everything.
template <typename Exchange>
class ExchangeCall final
    : public grpc::ServerBidiReactor<typename Exchange::Incoming, typename Exchange::Outgoing> {
 public:
  // `arguments` are those of the exchange's constructor before the transport.
  template <typename... Arguments>
  // Starts the conversation only after the constructor has returned, because the exchange may pass
  // a shared pointer to itself to other threads.
  static ExchangeCall* Begin(Arguments&&... arguments) {
    auto* const call = new ExchangeCall(std::forward<Arguments>(arguments)...);
    call->exchange_->Begin();
    return call;
  }

  void OnReadDone(bool ok) override { exchange_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { exchange_->OnWriteDone(ok); }
  void OnCancel() override { exchange_->OnCancel(); }
  // Handles gRPC's last callback for a call; the object must not be used afterwards. gRPC calls it
  // only after Finish and after every started operation has completed, so no callback can follow.
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

  // Shared, because the writer's answers and posted tasks may refer to the exchange after the call
  // has ended.
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace neurontrace
