// SPDX-License-Identifier: Apache-2.0
#include "tap/agent_connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace neurontrace::tap {

void AgentConnection::SetPath(const char* path) {
  const size_t bytes = strlen(path);
  // sun_path has 108 bytes (unix(7)), and the NUL must fit.
  usable_ = bytes > 0 && bytes < sizeof address_.sun_path;
  if (!usable_) return;
  memset(&address_, 0, sizeof address_);
  address_.sun_family = AF_UNIX;
  memcpy(address_.sun_path, path, bytes);
}

bool AgentConnection::ConnectIfDue(uint64_t now_ns) {
  if (connected() || !usable_ || now_ns < retry_at_ns_) return false;
  // Sequenced packets keep the borders of messages, so the tap never has to join parts.
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0) {
    fd_ = fd;
    connected_since_ns_ = now_ns;
    tokens_ = kCommandBurst;
    tokens_at_ns_ = now_ns;
    pending_count_ = 0;
    return true;
  }
  if (fd >= 0) close(fd);
  // A node without an agent is normal: the tap tries more and more seldom.
  retry_at_ns_ = now_ns + retry_pause_ns_;
  retry_pause_ns_ = retry_pause_ns_ * 2 < kRetryMaxNs ? retry_pause_ns_ * 2 : kRetryMaxNs;
  return false;
}

void AgentConnection::SendHello(const TapHello& hello, int memfd, uint64_t now_ns) {
  // The agent gets one end of a socket pair rather than an eventfd or an end of a pipe: file flags
  // belong to the open file, so an agent that cleared O_NONBLOCK on a shared one could block the
  // tap.
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    Drop(now_ns, false);
    return;
  }
  wake_fd_ = pair[0];
  iovec part = {const_cast<TapHello*>(&hello), sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int passed[2] = {memfd, pair[1]};
  memcpy(CMSG_DATA(rights), passed, sizeof passed);
  // MSG_NOSIGNAL: an agent that is gone must not raise SIGPIPE in the application.
  const ssize_t sent = sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  close(pair[1]);
  if (sent < 0) Drop(now_ns, false);
}

long AgentConnection::Receive(uint8_t* packet, size_t capacity, uint64_t now_ns) {
  if (!connected()) return -1;
  // The kernel closes descriptors that come with a packet, as no room is offered for them. With
  // MSG_TRUNC the size is that of the whole packet, which tells one that was cut off.
  const ssize_t size = recv(fd_, packet, capacity, MSG_DONTWAIT | MSG_TRUNC);
  if (size > 0) return size;
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  Drop(now_ns, false);
  return -1;
}

bool AgentConnection::TakeCommandToken(uint64_t now_ns) {
  const uint64_t earned = (now_ns - tokens_at_ns_) / kCommandPeriodNs;
  if (earned > 0) {
    // Only whole periods are consumed, so that fractions are not lost.
    tokens_at_ns_ += earned * kCommandPeriodNs;
    tokens_ =
        tokens_ + earned < kCommandBurst ? tokens_ + static_cast<uint32_t>(earned) : kCommandBurst;
  }
  if (tokens_ == 0) return false;
  --tokens_;
  return true;
}

void AgentConnection::SendStatus(const TapStatus& status, const char* detail, uint64_t now_ns) {
  if (!connected()) return;
  if (pending_count_ == kPendingMax) {
    // The agent sends commands and does not read the answers.
    Drop(now_ns, true);
    return;
  }
  Pending& pending = pending_[(pending_first_ + pending_count_) % kPendingMax];
  ++pending_count_;
  const size_t bytes = strnlen(detail, kTapStatusDetailBytesMax);
  pending.status = status;
  pending.status.detail_bytes = static_cast<uint32_t>(bytes);
  pending.status.header = {kTapMessageMagic, kTapProtocolVersion,
                           static_cast<uint16_t>(TapMessageType::kStatus),
                           static_cast<uint32_t>(sizeof(TapStatus) + bytes), 0};
  memcpy(pending.detail, detail, bytes);
  Flush(now_ns);
}

void AgentConnection::Flush(uint64_t now_ns) {
  while (connected() && pending_count_ > 0) {
    const Pending& pending = pending_[pending_first_];
    // Status and detail are sent as one packet from one piece of memory.
    static_assert(offsetof(Pending, detail) == sizeof(TapStatus));
    const ssize_t sent =
        send(fd_, &pending, pending.status.header.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) Drop(now_ns, false);
      return;
    }
    pending_first_ = (pending_first_ + 1) % kPendingMax;
    --pending_count_;
  }
}

void AgentConnection::SendWake() {
  if (wake_fd_ < 0) return;
  const uint64_t one = 1;
  // If the socket is full the agent has enough wake-ups to read. If the agent is gone, the main
  // socket shows it.
  send(wake_fd_, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void AgentConnection::Drop(uint64_t now_ns, bool misbehaved) {
  CloseDescriptors();
  pending_first_ = 0;
  pending_count_ = 0;
  disconnected_since_ns_ = now_ns;
  // An agent that misbehaves at every connection is tried every kRetryMaxNs only; one that was
  // restarted is tried at once.
  if (misbehaved) {
    retry_pause_ns_ = kRetryMaxNs;
  } else if (now_ns - connected_since_ns_ >= kGoodConnectionNs) {
    retry_pause_ns_ = kRetryFirstNs;
  }
  retry_at_ns_ = now_ns + retry_pause_ns_;
  retry_pause_ns_ = retry_pause_ns_ * 2 < kRetryMaxNs ? retry_pause_ns_ * 2 : kRetryMaxNs;
}

void AgentConnection::CloseDescriptors() {
  if (fd_ >= 0) close(fd_);
  if (wake_fd_ >= 0) close(wake_fd_);
  fd_ = -1;
  wake_fd_ = -1;
}

}  // namespace neurontrace::tap
