// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/tap_limits.h"

// Descriptors that a process which is not trusted made or sent. To close one may wait for as long
// as somebody else likes: for the answer to FLUSH of a file system that a user mounted (FUSE), or
// for the other end of a TCP connection with SO_LINGER, which may lie in the queue of the socket
// that is closed (close(2), socket(7), unix(7)).
namespace neurontrace {

// Closes them away from the sequence that uses them.
// thread: closers: close what taps made or sent, which may block; eight at most
class PeerCloser {
 public:
  // With no threads at once, on the caller's own, for tests.
  explicit PeerCloser(size_t threads_max = limits::kPeerCloserThreadsMax);
  // Waits for nothing: what is stuck goes with the process.
  ~PeerCloser() = default;

  // Any thread.
  void Close(UniqueFd fd);
  // Whether so many wait that no more should be let in. Any thread.
  bool full() const;

 private:
  struct State {
    mutable Mutex mutex;
    std::deque<UniqueFd> waiting NT_GUARDED_BY(mutex);
    size_t threads NT_GUARDED_BY(mutex) = 0;
  };
  static void Work(State& state);

  const size_t threads_max_;
  const std::shared_ptr<State> state_;  // of the threads, too
};

// Owns a descriptor and has it closed. Move only. The closer outlives it.
class PeerFd {
 public:
  PeerFd() = default;
  PeerFd(UniqueFd fd, PeerCloser& closer) : fd_(std::move(fd)), closer_(&closer) {}
  PeerFd(PeerFd&& other) noexcept = default;
  PeerFd& operator=(PeerFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~PeerFd() { Close(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void Close() {
    if (fd_.valid()) closer_->Close(std::move(fd_));
  }

 private:
  UniqueFd fd_;
  PeerCloser* closer_ = nullptr;
};

struct PeerMessage {
  ssize_t size = -1;  // as of recvmsg
  int flags = 0;
  // Every one that came: what is not taken over the kernel closes, on the caller's thread.
  std::vector<PeerFd> descriptors;
};

// Takes one message from a socket of packets, without waiting; errno is recvmsg's.
PeerMessage ReceivePeerMessage(int socket, std::span<char> data, PeerCloser& closer);

}  // namespace neurontrace
