// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/unique_fd.h"
#include "lib/wire/connection_shares.h"
#include "lib/wire/peer_slots.h"

namespace neurontrace {

// The port that a gRPC server listens on. It takes the connections itself and hands them to gRPC:
// gRPC 1.51 closes its own listening socket for good, without a report, when it cannot take a
// connection, for lack of descriptors say (on_read in src/core/lib/iomgr/tcp_server_posix.cc).
//
// Listen, AddTo, start the server, Start; destroy it before the server is shut down. Not
// thread-safe; what is in the options is called on a thread of its own.
// thread: port: accepts the aggregator's gRPC connections
class ServerPort {
 public:
  // Why a connection was closed at once: there is no descriptor for it, or its address has its
  // share.
  enum class Refusal : uint8_t { kDescriptors, kAddress };
  // Receives what happens to connections. Called on the port's thread. The defaults do nothing.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Called for each connection that was closed at once.
    virtual void OnRefused(Refusal /*why*/) {}
    // Called at most once a second with an address that has its share.
    virtual void OnCrowded(const std::string& /*address*/) {}
    // Called after ReportHandshakeFailure with the peer, as PeerText writes it, or "one of"
    // several; "": unknown.
    virtual void OnHandshakeFailed(const std::string& /*peer*/, const std::string& /*reason*/) {}
  };
  struct Options {
    // HOST:PORT that CheckAddress accepts; port 0: any free one.
    std::string address;
    // Connections get descriptors below this number. Further ones are closed at once, so that
    // descriptors remain for files; so are those of an address that has its share, see
    // ConnectionShares.
    int descriptors_max = 0;
    // Outlives the port; null: nobody is told.
    Observer* observer = nullptr;
    // Distributes connections over as many credentials as it has slots; null: there is a single
    // one.
    std::shared_ptr<PeerSlots> slots;
  };

  // Binds to every address of the host that this machine has; connections wait until Start. Fails
  // with FAILED_PRECONDITION, naming the address, if the machine has none of them, or one is taken.
  static absl::StatusOr<std::unique_ptr<ServerPort>> Listen(Options options);
  // Returns how many connections the process's limit of open files and limits::kGrpcConnectionsMax
  // allow.
  static int DescriptorsForConnections();

  ~ServerPort();
  ServerPort(const ServerPort&) = delete;
  ServerPort& operator=(const ServerPort&) = delete;

  uint16_t port() const { return port_; }
  // Adds the port to a server, with credentials for each slot. Called once, before the server is
  // built.
  void AddTo(grpc::ServerBuilder& builder,
             std::span<const std::shared_ptr<grpc::ServerCredentials>> credentials);
  // Begins to accept connections. Called once the server runs.
  void Start();
  // Called when gRPC has reported a failed handshake, without its peer (SetHandshakeListener): the
  // port checks which of its young connections are closed. Any thread.
  void ReportHandshakeFailure(std::string reason);

 private:
  ServerPort(Options options, std::vector<UniqueFd> sockets, uint16_t port);

  void Watch(int socket);
  // Accepts the connections that wait, at most kAcceptsPerTurn, and hands them to gRPC.
  void AcceptAll(int socket);
  void Pause(int socket);
  // Returns whether the connection may stay.
  bool Admit(int connection, const sockaddr_storage& peer);
  // Reports a refused connection, which the caller closes.
  void Refuse(Refusal why) const;
  // Returns the acceptor for a peer: by Options::slots, or the only one.
  size_t SlotOf(const sockaddr_storage& peer);
  // Runs shares_.Sweep, and permits the next sweep a second later.
  void Sweep();
  void CheckPendingHandshakes();
  // Marks the young connections that gRPC has closed, and forgets those that are no longer young.
  void RecordClosed();
  void RecordHandshakeFailure(const std::string& reason);

  const Options options_;
  const std::vector<UniqueFd> sockets_;
  const uint16_t port_;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors_;
  // All on the thread:
  struct PendingHandshake {  // a connection whose handshake may not be over
    int connection = -1;
    std::string peer;
    uint64_t accepted_ns = 0;  // monotonic, as the next
    uint64_t closed_ns = 0;    // 0: it is open
    bool is_logged = false;
  };
  std::deque<PendingHandshake> pending_handshakes_;
  bool watches_handshakes_ = false;
  ConnectionShares shares_;
  bool can_sweep_ = true;
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
