// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "wire/connection_shares.h"
#include "wire/peer_slots.h"

namespace neurontrace {

// The port that a gRPC server listens on. It takes the connections itself and hands them to gRPC:
// gRPC 1.51 closes its own listening socket for good when it cannot take one, for want of
// descriptors say (on_read in src/core/lib/iomgr/tcp_server_posix.cc), and nobody is told.
//
// Listen, AddTo, start the server, Start; destroy it before the server is shut down. Not
// thread-safe; what is in the options is called on a thread of its own.
// thread: port: accepts the aggregator's gRPC connections
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
    // Whose handshake failed, as PeerText says it, or "one of" several; empty: not known. On the
    // port's thread, after ReportHandshakeFailure; may be null.
    std::function<void(const std::string& peer, const std::string& reason)> handshake_failed;
    // Distributes connections over as many credentials as it has slots; null: there is one.
    std::shared_ptr<PeerSlots> slots;
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
  // Of each slot its credentials.
  void AddTo(grpc::ServerBuilder& builder,
             std::span<const std::shared_ptr<grpc::ServerCredentials>> credentials);
  void Start();
  // gRPC said that a handshake failed, without saying whose (SetHandshakeListener): the port looks
  // which of its young connections are closed. Any thread.
  void ReportHandshakeFailure(std::string reason);

 private:
  ServerPort(Options options, std::vector<UniqueFd> sockets, uint16_t port);

  void Watch(int socket);
  void AcceptAll(int socket);
  void Pause(int socket);
  // Whether the connection may stay.
  bool Admit(int connection, const sockaddr_storage& peer);
  void Refuse(Refusal why) const;
  size_t SlotOf(const sockaddr_storage& peer);
  void Sweep();
  void LookAtYoung();
  void NoteClosed();
  void TellHandshakeFailure(const std::string& reason);

  const Options options_;
  const std::vector<UniqueFd> sockets_;
  const uint16_t port_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors_;
  // All on the thread:
  struct Young {  // a connection whose handshake may not be over
    int connection = -1;
    std::string peer;
    uint64_t accepted_ns = 0;  // monotonic, as the next
    uint64_t closed_ns = 0;    // 0: it is open
    bool is_told = false;
  };
  std::deque<Young> young_;
  bool watches_young_ = false;
  ConnectionShares shares_;
  bool may_sweep_ = true;
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
