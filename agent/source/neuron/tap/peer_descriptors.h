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

// Handling of descriptors that an untrusted process made or sent. Closing one may block for as long
// as another party likes: until a FUSE file system that a user mounted answers FLUSH, or until the
// other end of a TCP connection with SO_LINGER reads, which may itself be in the queue of the
// socket that is closed (close(2), socket(7), unix(7)).
namespace neurontrace {

// Closes such descriptors away from the sequence that uses them. Threads are started on demand, and
// a thread that blocks stays so until the process ends.
// thread: closers: close what taps made or sent, which may block; eight at most
class PeerCloser {
 public:
  // With 0 threads descriptors are closed at once on the caller's own, for tests and fuzzers.
  explicit PeerCloser(size_t threads_max = limits::kPeerCloserThreadsMax);
  // Waits for nothing: blocked threads share state_ and end with the process.
  ~PeerCloser() = default;

  // Closes `fd` later. Any thread; never blocks.
  void Close(UniqueFd fd);
  // Returns true if so many descriptors wait that no more should be accepted. Any thread.
  bool full() const;

 private:
  // Shared with the threads, which may outlive the closer.
  struct State {
    mutable Mutex mutex;
    // Descriptors that no thread has taken yet, oldest first.
    std::deque<UniqueFd> waiting NT_GUARDED_BY(mutex);
    // Threads that were started and have not found the queue empty.
    size_t threads NT_GUARDED_BY(mutex) = 0;
  };
  // Closes what waits until nothing does. Runs on each thread of the closer.
  static void Work(State& state);

  // Above it descriptors wait; 0: there are no threads.
  const size_t threads_max_;
  const std::shared_ptr<State> state_;  // of the threads, too
};

// Owns a descriptor and has it closed by a PeerCloser, which outlives it. Move only.
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

  // As in UniqueFd, but Close does not block.
  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void Close() {
    if (fd_.valid()) closer_->Close(std::move(fd_));
  }

 private:
  UniqueFd fd_;
  PeerCloser* closer_ = nullptr;
};

// One message from a peer.
struct PeerMessage {
  // The result of recvmsg(2): 0 if the peer has closed or sent an empty packet, negative after an
  // error.
  ssize_t size = -1;
  // msg_flags of recvmsg(2), such as MSG_TRUNC.
  int flags = 0;
  // All descriptors that came: the kernel would close those that are not taken, on the caller's
  // thread.
  std::vector<PeerFd> descriptors;
};

// Receives one message from a packet socket without waiting; errno is that of recvmsg(2).
PeerMessage ReceivePeerMessage(int socket, std::span<char> data, PeerCloser& closer);

}  // namespace neurontrace
