// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a peer's descriptors wait for, who has them closed does not.
#include "agent/source/neuron/tap/peer_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "agent/source/neuron/tap/lingering_socket.h"

namespace neurontrace {
namespace {

// Both ends of a pipe; the one that reads sees when the other one is closed.
struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reads = UniqueFd(ends[0]);
    writes = UniqueFd(ends[1]);
  }
  void AwaitClosed() const {
    char byte;
    EXPECT_EQ(read(reads.get(), &byte, 1), 0);
  }
  UniqueFd reads;
  UniqueFd writes;
};

TEST(PeerDescriptorsTest, AreClosed) {
  PeerCloser closer;
  Pipe pipe;
  { const PeerFd fd(std::move(pipe.writes), closer); }
  pipe.AwaitClosed();
  EXPECT_FALSE(closer.full());
}

TEST(PeerDescriptorsTest, WithoutThreadsAtOnce) {
  PeerCloser closer(0);
  Pipe pipe;
  PeerFd fd(std::move(pipe.writes), closer);
  const int number = fd.get();
  fd.Close();
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST(PeerDescriptorsTest, PendingCloseDelaysOnlyLaterCloses) {
  PeerCloser closer(2);
  std::vector<UniqueFd> peers;
  for (int i = 0; i < 2; ++i) {
    LingeringSocket lingering;
    closer.Close(std::move(lingering.fd));
    peers.push_back(std::move(lingering.peer));
  }
  std::vector<Pipe> pipes(limits::kPeerDescriptorsWaitingMax);
  for (Pipe& pipe : pipes) closer.Close(std::move(pipe.writes));
  // The two wait by now, or are about to.
  while (!closer.full()) std::this_thread::yield();
  peers.clear();
  for (const Pipe& pipe : pipes) pipe.AwaitClosed();
  EXPECT_FALSE(closer.full());
}

TEST(PeerDescriptorsTest, AllOfAMessageAreTakenOver) {
  PeerCloser closer(0);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd theirs(pair[0]);
  const UniqueFd ours(pair[1]);
  std::vector<int> passed(253, theirs.get());
  alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {};
  char byte = 'x';
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(passed.size() * sizeof(int));
  std::copy(passed.begin(), passed.end(), reinterpret_cast<int*>(CMSG_DATA(rights)));
  ASSERT_EQ(sendmsg(theirs.get(), &message, 0), 1);
  char data[8];
  const PeerMessage received = ReceivePeerMessage(ours.get(), data, closer);
  EXPECT_EQ(received.size, 1);
  EXPECT_EQ(received.flags & MSG_CTRUNC, 0);
  EXPECT_EQ(received.descriptors.size(), 253u);
}

}  // namespace
}  // namespace neurontrace
