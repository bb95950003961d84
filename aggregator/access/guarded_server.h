// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/access/access_control.h"
#include "lib/base/clock.h"
#include "lib/wire/channel_security.h"
#include "lib/wire/server_port.h"

namespace neurontrace {

// The aggregator's gRPC server, which serves only calls that AccessControl admits. Serves from
// Start until its destruction. At most one exists in a process, because gRPC has one listener for
// failed handshakes. Owned by the aggregator.
class GuardedServer {
 public:
  struct Options {
    std::string listen;  // HOST:PORT; port 0 picks a free one
    ChannelSecurity security;
    // Then connections without a certificate are accepted, as a token may identify the caller.
    bool takes_tokens = false;  // now, or possibly after the policy file has changed
  };
  // All of them must outlive this. `services` are registered with the server and must be ready for
  // calls.
  struct Deps {
    AccessControl& access;
    prometheus::Registry& registry;
    const Clock& clock;
    std::vector<grpc::Service*> services;
  };

  // Fails if the address cannot be listened on or gRPC does not start. Calls can arrive before this
  // returns.
  static absl::StatusOr<std::unique_ptr<GuardedServer>> Start(const Options& options,
                                                              const Deps& deps);
  // Gives calls half a second to finish.
  ~GuardedServer();
  GuardedServer(const GuardedServer&) = delete;
  GuardedServer& operator=(const GuardedServer&) = delete;

  // Returns the address with the actual port as HOST:PORT, for logs and for clients.
  const std::string& address() const { return address_; }
  // Returns a channel to this server within the process, past its port, TLS and AuthInterceptor:
  // for the page, whose calls have tickets (page_callers.h). Its calls end with the server.
  std::shared_ptr<grpc::Channel> MakeChannelWithin() const;
  // Makes health checks report that this server stops serving. Called before its destruction. Load
  // balancers and clients then stop sending new calls, while those that are running continue.
  void AnnounceShutdown();

 private:
  // Counts refused connections and failed handshakes. Called by the port on its thread, and by gRPC
  // on any thread.
  class ConnectionLog final : public ServerPort::Observer {
   public:
    explicit ConnectionLog(const Deps& deps);
    // ServerPort::Observer
    void OnRefused(ServerPort::Refusal why) override;
    void OnCrowded(const std::string& address) override;
    // Writes at most limits::kRefusalsWrittenPerSecond lines per second to the audit log.
    void OnHandshakeFailed(const std::string& peer, const std::string& reason) override;
    // Called by gRPC on any thread.
    void CountFailedHandshake() { handshakes_failed_.Increment(); }

   private:
    AuditLog& audit_;
    const Clock& clock_;
    prometheus::Counter& handshakes_failed_;
    prometheus::Counter& refused_descriptors_;
    prometheus::Counter& refused_address_;
    uint64_t second_ = 0;  // this and the next: on the port's thread
    uint32_t written_in_second_ = 0;
  };

  // Installs the handshake listener, then opens the port for connections.
  GuardedServer(std::unique_ptr<ConnectionLog> log, std::unique_ptr<ServerPort> port,
                std::unique_ptr<grpc::Server> server, std::string address);

  // Outlives the port and the server, whose callbacks use it.
  const std::unique_ptr<ConnectionLog> log_;
  // Accepts connections and gives them to the server; destroyed first.
  std::unique_ptr<ServerPort> port_;
  const std::unique_ptr<grpc::Server> server_;
  const std::string address_;
};

}  // namespace neurontrace
