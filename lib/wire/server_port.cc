// SPDX-License-Identifier: Apache-2.0
// The port has one thread with an event loop, on which everything runs once Start was called;
// ReportHandshakeFailure posts to it. gRPC owns a connection as soon as it was handed over and does
// not report when it closes it. The port therefore keeps the descriptor's number and the peer's
// address, and asks the kernel later whether the number still has that peer (getpeername). A number
// that accept returns again was closed before.
//
// A failed handshake is reported by gRPC without its peer. The port remembers each connection until
// its handshake must be over, and names those that were closed around the time of the report.
#include "lib/wire/server_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <tuple>

#include "lib/base/status.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Connections accepted in one turn of the loop, so that its other tasks run in between.
constexpr int kAcceptsPerTurn = 64;
// How long accepting pauses when the system has no descriptor or memory left.
constexpr uint64_t kPauseNs = 100'000'000;
// The time between two sweeps.
constexpr uint64_t kSweepPauseNs = 1'000'000'000;
// A connection is young as long as its handshake may take; young ones are checked at this interval.
constexpr uint64_t kHandshakeWatchNs =
    uint64_t{limits::kGrpcHandshakeMsMax} * 1'000'000 + 1'000'000'000;
constexpr uint64_t kHandshakePauseNs = 250'000'000;
// How long a closed young connection may still be the one of a reported failure, and how long after
// its report gRPC closes it.
constexpr uint64_t kClosedKeptNs = 500'000'000;
constexpr uint64_t kClosingNs = 50'000'000;
// Beyond: the oldest is forgotten, and its failure has no address in the audit log.
constexpr size_t kPendingHandshakesMax = 4'096;

uint64_t NowMonotonicNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Frees what getaddrinfo has returned.
struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Either wildcard stands for both families, as with gRPC: an IPv6 cluster reaches 0.0.0.0 too. The
// second host is for machines without IPv6.
std::vector<std::string> HostsOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "0.0.0.0" || host == "::") return {"::", "0.0.0.0"};
  return {host};
}

// Returns the port that the kernel has given to a bound socket.
uint16_t PortOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof name;
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  // The port is at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

// Returns an invalid descriptor, with errno set, if the machine has no such address or the port is
// taken.
UniqueFd Bind(const addrinfo& address, uint16_t port) {
  UniqueFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  const int on = 1, off = 0;
  // A restarted aggregator can take the port while connections of the old one are closing.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Accepted connections inherit it.
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  sockaddr_storage name = {};
  std::memcpy(&name, address.ai_addr, address.ai_addrlen);
  reinterpret_cast<sockaddr_in*>(&name)->sin_port = htons(port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), address.ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    const int error = errno;
    fd.Close();
    errno = error;
  }
  return fd;
}

// Binds to all addresses of the host that the machine has, with one port. Sets `port` if it is 0.
absl::Status BindAll(const std::string& host, uint16_t& port, std::vector<UniqueFd>& sockets) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return Unavailable("{}", gai_strerror(error));
  }
  const Addresses addresses(found);
  // The first socket takes any free port if `port` is 0, and the others must then get the same.
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    UniqueFd socket = Bind(*each, port);
    if (socket.valid()) {
      port = PortOf(socket.get());
      sockets.push_back(std::move(socket));
      // Other errors mean that this machine does not have the address, such as IPv6 being disabled.
    } else if (errno == EADDRINUSE || errno == EACCES) {
      return Unavailable("{}", std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Returns what the limit of open files leaves beyond the files that the process needs.
int ServerPort::DescriptorsForConnections() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = limits::DescriptorsForFiles(limit.rlim_cur);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur - files, limits::kGrpcConnectionsMax));
}

absl::StatusOr<std::unique_ptr<ServerPort>> ServerPort::Listen(Options options) {
  const std::string& address = options.address;
  auto port = static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  std::vector<UniqueFd> sockets;
  absl::Status status;
  // The second host is tried only if the machine has no address of the first.
  for (const std::string& host : HostsOf(address)) {
    status = BindAll(host, port, sockets);
    if (!status.ok() || !sockets.empty()) break;
  }
  if (status.ok() && sockets.empty()) status = Unavailable("it is not an address of this machine");
  if (!status.ok()) {
    return FailedPrecondition("cannot listen on {}: {}", address, std::string(status.message()));
  }
  return std::unique_ptr<ServerPort>(new ServerPort(std::move(options), std::move(sockets), port));
}

ServerPort::ServerPort(Options options, std::vector<UniqueFd> sockets, uint16_t port)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      port_(port),
      shares_(options_.descriptors_max) {}

ServerPort::~ServerPort() {
  // The thread uses the listening sockets and must end before they are closed.
  loop_.Quit();
  if (thread_.joinable()) thread_.join();
}

void ServerPort::AddTo(grpc::ServerBuilder& builder,
                       std::span<const std::shared_ptr<grpc::ServerCredentials>> credentials) {
  using enum grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  for (const auto& each : credentials) {
    // One acceptor for each of the credentials, in the order of the slots.
    acceptors_.push_back(builder.experimental().AddExternalConnectionAcceptor(FROM_FD, each));
  }
}

void ServerPort::Start() {
  for (const UniqueFd& socket : sockets_) {
    // On the loop's thread: watches belong to its sequence.
    loop_.PostTask([this, fd = socket.get()] { Watch(fd); });
  }
  thread_ = std::thread([this] { loop_.Run(); });
}

void ServerPort::Watch(int socket) {
  loop_.AddReadableWatch(socket, [this, socket] { AcceptAll(socket); });
}

void ServerPort::AcceptAll(int socket) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    UniqueFd connection(
        accept4(socket, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) {
      // Connections that were closed while they waited are reported as errors too (accept(2)); they
      // need no pause.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) Pause(socket);
      return;
    }
    if (!Admit(connection.get(), peer)) continue;
    if (options_.observer != nullptr) {
      pending_handshakes_.push_back({.connection = connection.get(),
                                     .peer = PeerText(peer),
                                     .accepted_ns = NowMonotonicNs()});
      if (pending_handshakes_.size() > kPendingHandshakesMax) pending_handshakes_.pop_front();
      if (!std::exchange(watches_handshakes_, true)) CheckPendingHandshakes();
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket;
    parameters.fd = connection.release();
    acceptors_[SlotOf(peer)]->HandleNewConnection(&parameters);
  }
}

size_t ServerPort::SlotOf(const sockaddr_storage& peer) {
  if (options_.slots == nullptr || acceptors_.size() < options_.slots->size()) return 0;
  std::optional<std::set<std::string>> connected;
  return options_.slots->Assign(AddressText(peer), [&](const std::string& host) {
    // Without a recent sweep every host counts as connected, which at worst puts two addresses into
    // one slot.
    if (!connected && !can_sweep_) return true;
    if (!connected) {
      Sweep();
      connected = shares_.Addresses();
    }
    return connected->contains(host);
  });
}

// At most once a second, as it makes a system call for each connection.
void ServerPort::Sweep() {
  can_sweep_ = false;
  loop_.PostDelayedTask([this] { can_sweep_ = true; }, kSweepPauseNs);
  shares_.Sweep();
}

// Repeats itself until no young connection is left.
void ServerPort::CheckPendingHandshakes() {
  RecordClosed();
  watches_handshakes_ = !pending_handshakes_.empty();
  if (watches_handshakes_)
    loop_.PostDelayedTask([this] { CheckPendingHandshakes(); }, kHandshakePauseNs);
}

// Records which young connections were closed, and forgets those that are old.
void ServerPort::RecordClosed() {
  const uint64_t now_ns = NowMonotonicNs();
  for (PendingHandshake& pending : pending_handshakes_) {
    if (pending.closed_ns != 0) continue;
    sockaddr_storage name = {};
    socklen_t size = sizeof name;
    const bool is_open =
        getpeername(pending.connection, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
        PeerText(name) == pending.peer;
    if (!is_open) pending.closed_ns = now_ns;
  }
  std::erase_if(pending_handshakes_, [now_ns](const PendingHandshake& pending) {
    return pending.closed_ns != 0 ? now_ns - pending.closed_ns > kClosedKeptNs
                                  : now_ns - pending.accepted_ns > kHandshakeWatchNs;
  });
}

void ServerPort::ReportHandshakeFailure(std::string reason) {
  // gRPC closes the connection only after it has logged the failure.
  loop_.PostDelayedTask([this, reason = std::move(reason)] { RecordHandshakeFailure(reason); },
                        kClosingNs);
}

// Each closed connection is named in one report only, so that failures in quick succession name
// different peers.
void ServerPort::RecordHandshakeFailure(const std::string& reason) {
  if (options_.observer == nullptr) return;
  RecordClosed();
  std::vector<const PendingHandshake*> closed;
  for (PendingHandshake& pending : pending_handshakes_) {
    if (pending.closed_ns == 0 || pending.is_logged) continue;
    closed.push_back(&pending);
    pending.is_logged = true;
  }
  // Newest first: gRPC has closed the failed one just now, so it is the most likely one.
  std::sort(closed.begin(), closed.end(), [](const PendingHandshake* a, const PendingHandshake* b) {
    return std::tie(a->closed_ns, a->accepted_ns) > std::tie(b->closed_ns, b->accepted_ns);
  });
  std::vector<std::string> peers;
  for (const PendingHandshake* const pending : closed) peers.push_back(pending->peer);
  options_.observer->OnHandshakeFailed(DescribeOneOf(peers), reason);
}

// Descriptors are scarcest, so they are checked first.
bool ServerPort::Admit(int connection, const sockaddr_storage& peer) {
  // accept returns the lowest free number, so at least this many descriptors are open.
  if (connection >= options_.descriptors_max) {
    Refuse(Refusal::kDescriptors);
    return false;
  }
  if (shares_.Take(connection, peer)) return true;
  // gRPC closes connections without notice, so the counts are only an upper bound before a sweep.
  if (can_sweep_) {
    Sweep();
    if (shares_.Take(connection, peer)) return true;
    if (options_.observer != nullptr) options_.observer->OnCrowded(AddressText(peer));
  }
  Refuse(Refusal::kAddress);
  return false;
}

void ServerPort::Refuse(Refusal why) const {
  if (options_.observer != nullptr) options_.observer->OnRefused(why);
}

void ServerPort::Pause(int socket) {
  // The connection stays in the backlog; without a pause the watch would fire all the time.
  loop_.RemoveReadableWatch(socket);
  loop_.PostDelayedTask([this, socket] { Watch(socket); }, kPauseNs);
}

}  // namespace neurontrace
