// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/guarded_server.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "lib/base/address.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/limits.h"
#include "lib/wire/grpc_channel.h"
#include "lib/wire/grpc_set_up.h"

namespace neurontrace {
namespace {

// Time for calls to end by themselves. What is not acknowledged by then is sent again.
constexpr std::chrono::milliseconds kShutdownPatience{500};

// Returns the counter of connections that were closed for one reason.
prometheus::Counter& RefusedConnections(prometheus::Registry& registry, const char* reason) {
  return MakeCounter(registry, "neurontrace_aggregator_connections_refused_total",
                     "Connections closed immediately", {{"reason", reason}});
}

}  // namespace

GuardedServer::ConnectionLog::ConnectionLog(const Deps& deps)
    : audit_(deps.access.audit()),
      clock_(deps.clock),
      handshakes_failed_(
          MakeCounter(deps.registry, "neurontrace_aggregator_handshakes_failed_total",
                      "Failed TLS handshakes, because of untrusted certificates or plain text")),
      refused_descriptors_(RefusedConnections(deps.registry, "descriptors")),
      refused_address_(RefusedConnections(deps.registry, "address")) {}

// Only two reasons exist: too many connections of one address, and too few descriptors.
void GuardedServer::ConnectionLog::OnRefused(ServerPort::Refusal why) {
  (why == ServerPort::Refusal::kAddress ? refused_address_ : refused_descriptors_).Increment();
}

void GuardedServer::ConnectionLog::OnCrowded(const std::string& address) {
  SPDLOG_WARN("{} has reached the limit of connections per address; further ones are closed",
              address);
}

// An attacker can cause any number of these, so only some are written. All are counted.
void GuardedServer::ConnectionLog::OnHandshakeFailed(const std::string& peer,
                                                     const std::string& reason) {
  // Only one thread calls this, so the two fields need no lock.
  const uint64_t second = clock_.MonotonicNs() / 1'000'000'000;
  if (second != second_) written_in_second_ = 0;
  second_ = second;
  if (++written_in_second_ > limits::kRefusalsWrittenPerSecond) return;
  audit_.Write({.action = "connection",
                .from = peer,
                .outcome = absl::UnauthenticatedError("the TLS handshake failed: " + reason)});
}

// The order is this: the log first, as the port reports to it, then the port, then gRPC, which
// gets its connections from the port.
absl::StatusOr<std::unique_ptr<GuardedServer>> GuardedServer::Start(const Options& options,
                                                                    const Deps& deps) {
  auto log = std::make_unique<ConnectionLog>(deps);
  // Without TLS nobody has to be told apart, and one slot is enough.
  const auto slots = std::make_shared<PeerSlots>(
      deps.access.identifies_callers() ? limits::kPeerSlots : size_t{1});
  // Both are global settings of gRPC that have to be made before a server is built.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  auto listening = ServerPort::Listen({.address = options.listen,
                                       .descriptors_max = ServerPort::DescriptorsForConnections(),
                                       .observer = log.get(),
                                       .slots = slots});
  if (!listening.ok()) return DescribeListenFailure("--listen", listening.status());
  std::unique_ptr<ServerPort> port = *std::move(listening);
  port->AddTo(builder, MakeServerCredentials(options.security, deps.access.MakeInterceptors(slots),
                                             options.takes_tokens));
  // Limits the memory and the threads of all calls together.
  grpc::ResourceQuota quota("aggregator");
  builder.SetResourceQuota(
      quota.Resize(limits::kGrpcBytesMax).SetMaxThreads(limits::kGrpcThreadsMax));
  for (grpc::Service* const service : deps.services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return Internal("the gRPC server did not start; see the log");
  // The host as requested, with the port that was bound.
  std::string address =
      fmt::format("{}:{}", options.listen.substr(0, options.listen.rfind(':')), port->port());
  return std::unique_ptr<GuardedServer>(
      new GuardedServer(std::move(log), std::move(port), std::move(server), std::move(address)));
}

// Needs `this` for the listener, so it is not part of Start.
GuardedServer::GuardedServer(std::unique_ptr<ConnectionLog> log, std::unique_ptr<ServerPort> port,
                             std::unique_ptr<grpc::Server> server, std::string address)
    : log_(std::move(log)),
      port_(std::move(port)),
      server_(std::move(server)),
      address_(std::move(address)) {
  // Connections wait until the port starts, so no handshake can fail before the listener is set.
  SetHandshakeListener([this](std::string_view reason) {
    log_->CountFailedHandshake();
    port_->ReportHandshakeFailure(std::string(reason));
  });
  port_->Start();
  server_->GetHealthCheckService()->SetServingStatus(true);
}

std::shared_ptr<grpc::Channel> GuardedServer::MakeChannelWithin() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits::kGrpcMessageBytesMax));
  return server_->InProcessChannel(arguments);
}

// Only the answers of health checks change; calls continue.
void GuardedServer::AnnounceShutdown() { server_->GetHealthCheckService()->Shutdown(); }

// The order matters: no more callbacks, no more connections, then the end of the calls.
GuardedServer::~GuardedServer() {
  // First, because the listener uses the port and the log.
  SetHandshakeListener(nullptr);
  port_.reset();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
  server_->Wait();
}

}  // namespace neurontrace
