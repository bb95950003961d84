// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/chrony_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

namespace neurontrace {
namespace {

// More than any answer of chronyd; recv(2) cuts what is longer.
constexpr size_t kReplyBytesMax = 1'024;
// The port is open to every process of the machine, so one wakeup reads a bounded number.
constexpr int kRepliesAtOnceMax = 16;

// Fills in the address of a Unix socket. Returns false if the path is too long for one.
bool FillAddress(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

}  // namespace

ChronyClient::ChronyClient(ChronyPaths paths, TaskRunner& runner, Random& random,
                           OnAnswer on_answer)
    : paths_(std::move(paths)),
      runner_(runner),
      random_(random),
      on_answer_(std::move(on_answer)) {}

ChronyClient::~ChronyClient() { Disconnect(); }

void ChronyClient::Disconnect() {
  if (socket_.valid()) runner_.RemoveReadableWatch(socket_.get());
  socket_.Close();
  if (!own_path_.empty()) unlink(own_path_.c_str());
  own_path_.clear();
  waiting_ = false;
}

bool ChronyClient::ConnectUnix() {
  sockaddr_un peer;
  sockaddr_un own;
  // chronyd answers to the path that a question comes from.
  const std::string own_path =
      paths_.directory + "/neurontrace." + std::to_string(getpid()) + ".sock";
  if (!FillAddress(paths_.directory + "/chronyd.sock", peer) || !FillAddress(own_path, own)) {
    return false;
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return false;
  // A process of the same pid may have died without removing it.
  unlink(own_path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) return false;
  // From here on Disconnect removes the file.
  own_path_ = own_path;
  // chronyd runs as a user of its own and needs write permission to answer.
  if (chmod(own_path.c_str(), 0666) != 0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    Disconnect();
    return false;
  }
  socket_ = std::move(fd);
  return true;
}

bool ChronyClient::ConnectUdp() {
  if (paths_.port == 0) return false;
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(paths_.port);
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Connected: the kernel lets no other address through.
  if (!fd.valid() ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    return false;
  }
  socket_ = std::move(fd);
  return true;
}

bool ChronyClient::Connect() {
  if (socket_.valid()) return true;
  const bool connected = try_udp_ ? ConnectUdp() || ConnectUnix() : ConnectUnix() || ConnectUdp();
  if (connected) runner_.AddReadableWatch(socket_.get(), [this] { OnReadable(); });
  return connected;
}

bool ChronyClient::Ask() {
  if (waiting_) {  // the last question was not answered: another way, another time
    try_udp_ = !try_udp_;
    Disconnect();
  }
  if (!Connect()) return false;
  // Random, so that another process cannot guess it and forge an answer.
  sequence_ = static_cast<uint32_t>(random_.Next64());
  const std::string packet = EncodeTrackingRequest(sequence_);
  const bool sent = send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(packet.size());
  if (!sent) {
    try_udp_ = !try_udp_;
    Disconnect();
  }
  waiting_ = sent;
  return sent;
}

void ChronyClient::OnReadable() {
  char bytes[kReplyBytesMax];
  for (int i = 0; i < kRepliesAtOnceMax; ++i) {
    const ssize_t length = recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (length < 0) {
      // A socket error, such as "nobody listens at the port", is reported once and then cleared.
      // waiting_ makes the next Ask take the other way.
      if (errno != EAGAIN && errno != EINTR) waiting_ = true;
      return;
    }
    const auto tracking = DecodeTrackingReply({bytes, static_cast<size_t>(length)}, sequence_);
    if (!waiting_ || !tracking.ok()) {
      ++refused_;
      continue;
    }
    waiting_ = false;
    on_answer_(*tracking);
  }
}

}  // namespace neurontrace
