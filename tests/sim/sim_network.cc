// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_network.h"

#include <utility>

#include "agent/control_messages.h"

namespace neurontrace {
namespace {

// How long a connection attempt into nowhere takes to fail.
constexpr uint64_t kConnectTimeoutNs = 5 * kSimSecond;

class SimControlStream final : public ControlStream {
 public:
  explicit SimControlStream(std::shared_ptr<ControlSimCall> call) : call_(std::move(call)) {}
  ~SimControlStream() override { call_->CloseClient(); }
  void Send(const AgentReport& report) override {
    call_->Write(std::make_shared<v1::AgentReport>(ToMessage(report)));
  }

 private:
  const std::shared_ptr<ControlSimCall> call_;
};

}  // namespace

SimNetwork::~SimNetwork() {
  ForEach([](auto& call) { call.DropServer(0); });
}

template <typename Visit>
void SimNetwork::ForEach(Visit visit) {
  const auto walk = [&](auto& calls) {
    for (const auto& weak : calls) {
      if (const auto call = weak.lock()) visit(*call);
    }
    std::erase_if(calls, [](const auto& weak) { return weak.expired(); });
  };
  walk(uploads_);
  walk(controls_);
}

void SimNetwork::SetServer(SimServer* server, uint64_t reported_after_ns) {
  server_ = server;
  ForEach([&](auto& call) { call.DropServer(reported_after_ns); });
}

void SimNetwork::BreakCalls(SimLink& link) {
  ForEach([&](auto& call) {
    if (&call.link() != &link || !call.open()) return;
    call.Break(world_.random.Between(0, 2 * kSimSecond), world_.random.Between(0, 15 * kSimSecond),
               world_.random.Between(0, 4), world_.random.Between(0, 4));
  });
}

void SimNetwork::Unblock(SimLink& link) {
  link.blocked = false;
  ForEach([&](auto& call) {
    if (&call.link() == &link) call.Pump();
  });
}

void SimNetwork::Silence(SimLink& link) {
  ForEach([&](auto& call) {
    if (&call.link() == &link) call.CloseClient(/*silent=*/true);
  });
}

template <typename Call>
void SimNetwork::Begin(const std::shared_ptr<Call>& call, std::vector<std::weak_ptr<Call>>& calls,
                       std::function<void(SimServer&, std::shared_ptr<Call>)> accept) {
  calls.push_back(call);
  const bool reaches = server_ != nullptr && !call->link().blocked;
  const uint64_t after_ns = call->link().blocked ? kConnectTimeoutNs : 2 * call->link().latency_ns;
  world_.runner.PostDelayedTask(
      [this, call, reaches, accept = std::move(accept)] {
        if (!call->client_open()) return;
        if (!reaches || server_ == nullptr || call->broken()) {
          call->DropServer(0);
          return;
        }
        accept(*server_, call);
      },
      after_ns);
}

UploadConnector SimNetwork::MakeUploadConnector(SimLink& link, const std::string& agent_id) {
  return
      [this, &link, agent_id](UploadStream::Listener& listener) -> std::unique_ptr<UploadStream> {
        class Stream final : public UploadStream {
         public:
          Stream(SimNetwork& network, std::shared_ptr<UploadSimCall> call)
              : network_(network), call_(std::move(call)) {}
          ~Stream() override { call_->CloseClient(); }
          void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) override {
            if (!envelope->columns().empty() &&
                network_.world_.random.Chance(network_.corrupt_per_mille_)) {
              auto damaged = std::make_shared<v1::ChunkEnvelope>(*envelope);
              std::string& columns = *damaged->mutable_columns();
              columns[network_.world_.random.Between(0, columns.size() - 1)] ^= 0x10;
              envelope = std::move(damaged);
            }
            call_->Write(std::move(envelope));
          }

         private:
          SimNetwork& network_;
          const std::shared_ptr<UploadSimCall> call_;
        };
        auto call = std::make_shared<UploadSimCall>(
            world_, link,
            UploadSimCall::Client{[&listener](const v1::UploadAck& ack) { listener.OnAck(ack); },
                                  [&listener] { listener.OnWritten(); },
                                  [&listener](const absl::Status& s) { listener.OnClosed(s); }});
        Begin<UploadSimCall>(call, uploads_, [agent_id](SimServer& server, auto accepted) {
          server.AcceptUpload(std::move(accepted), agent_id);
        });
        return std::make_unique<Stream>(*this, std::move(call));
      };
}

ControlConnector SimNetwork::MakeControlConnector(SimLink& link) {
  return [this, &link](ControlStream::Listener& listener) -> std::unique_ptr<ControlStream> {
    auto call = std::make_shared<ControlSimCall>(
        world_, link,
        ControlSimCall::Client{[this, &listener](const v1::AgentOrder& order) {
                                 const absl::Status status = DispatchOrder(order, listener);
                                 if (!status.ok())
                                   world_.trace.Violate("an order is nonsense: {}",
                                                        status.ToString());
                               },
                               [&listener] { listener.OnWritten(); },
                               [&listener](const absl::Status& s) { listener.OnClosed(s); }});
    Begin<ControlSimCall>(call, controls_, [](SimServer& server, auto accepted) {
      server.AcceptControl(std::move(accepted));
    });
    return std::make_unique<SimControlStream>(std::move(call));
  };
}

}  // namespace neurontrace
