// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "wire/connection_shares.h"

namespace neurontrace {

// The port that a gRPC server listens on. It takes the connections itself and hands them to gRPC:
// gRPC 1.51 closes its own listening socket for good when it cannot take one, for want of
// descriptors say (on_read in src/core/lib/iomgr/tcp_server_posix.cc), and nobody is told.
//
// Listen, AddTo, start the server, Start; destroy it before the server is shut down. Not
// thread-safe; what is in the options is called on a thread of its own.
class ServerPort {
 public:
  enum class Refusal : uint8_t { kDescriptors, kAddress };
  struct Options {
    std::string address;  // as CheckAddress wants it; port 0: any
    // Connections get the descriptors below this number. Further ones are closed at once, so that
    // descriptors are left for files; likewise those of an address that has its share, see
    // ConnectionShares.
    int descriptors_max = 0;
    std::function<void(Refusal)> refused;  // each of those; may be null
    // At most once a second: the address that has its share; may be null.
    std::function<void(const std::string&)> crowded;
  };

  // Binds to every address of the host that this machine has; connections wait until Start.
  // FAILED_PRECONDITION with the place where there is none, or one is taken.
  static absl::StatusOr<std::unique_ptr<ServerPort>> Listen(Options options);
  // As many as the process's limit of open files and limits::kGrpcConnectionsMax allow.
  static int DescriptorsForConnections();

  ~ServerPort();
  ServerPort(const ServerPort&) = delete;
  ServerPort& operator=(const ServerPort&) = delete;

  uint16_t port() const { return port_; }
  void AddTo(grpc::ServerBuilder& builder,
             const std::shared_ptr<grpc::ServerCredentials>& credentials);
  void Start();

 private:
  ServerPort(Options options, std::vector<UniqueFd> sockets, uint16_t port);

  void Watch(int socket);
  void AcceptAll(int socket);
  void Pause(int socket);
  // Whether the connection may stay.
  bool Admit(int connection, const sockaddr_storage& peer);
  void Refuse(Refusal why) const;

  const Options options_;
  const std::vector<UniqueFd> sockets_;
  const uint16_t port_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  ConnectionShares shares_;  // on the thread
  bool may_sweep_ = true;    // on the thread
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
