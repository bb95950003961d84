// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/peer_descriptors.h"

#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

namespace neurontrace {
namespace {

// SCM_MAX_FD of the kernel: no message carries more (unix(7)).
constexpr size_t kDescriptorsOfMessageMax = 253;

// A peer may have set its socket to block the last close until what was sent is read.
void DropLinger(int fd) {
  constexpr linger kNever = {};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &kNever, sizeof kNever);  // not for what is no socket
}

}  // namespace

PeerCloser::PeerCloser(size_t threads_max)
    : threads_max_(threads_max), state_(std::make_shared<State>()) {}

void PeerCloser::Close(UniqueFd fd) {
  // The destructor of the argument closes it.
  if (threads_max_ == 0) return;
  {
    const MutexLock lock(state_->mutex);
    // One queue for all threads, so that a blocked one holds up a single descriptor.
    state_->waiting.push_back(std::move(fd));
    if (state_->threads == threads_max_) return;
    ++state_->threads;
  }
  try {
    std::thread closer([state = state_] { Work(*state); });
    closer.detach();  // tidy: allow(banned-word) it may be stuck for ever
  } catch (const std::system_error&) {
    Work(*state_);  // there is no thread to be had: here, rather than never
  }
}

void PeerCloser::Work(State& state) {
  MutexLock lock(state.mutex);
  while (!state.waiting.empty()) {
    UniqueFd fd = std::move(state.waiting.front());
    state.waiting.pop_front();
    // close(2) is what may block, so never under the lock.
    lock.Unlock();
    fd.Close();
    lock.Lock();
  }
  assert(state.threads > 0);
  --state.threads;
}

bool PeerCloser::full() const {
  const MutexLock lock(state_->mutex);
  return state_->waiting.size() >= limits::kPeerDescriptorsWaitingMax;
}

PeerMessage ReceivePeerMessage(int socket, std::span<char> data, PeerCloser& closer) {
  // Room for as many descriptors as the kernel passes at once, so that none is cut off and closed
  // by it.
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsOfMessageMax * sizeof(int))];
  iovec part = {data.data(), data.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  PeerMessage received;
  received.size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received.size < 0) return received;
  received.flags = message.msg_flags;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      DropLinger(fd);
      received.descriptors.emplace_back(UniqueFd(fd), closer);
    }
  }
  return received;
}

}  // namespace neurontrace
