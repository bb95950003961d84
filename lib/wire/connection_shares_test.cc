// SPDX-License-Identifier: Apache-2.0
// The arithmetic with made-up peers; what was closed meanwhile with real connections.
#include "lib/wire/connection_shares.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>
#include <vector>

#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

sockaddr_storage Peer(const char* address, uint16_t port) {
  sockaddr_storage name = {};
  auto& six = reinterpret_cast<sockaddr_in6&>(name);
  auto& four = reinterpret_cast<sockaddr_in&>(name);
  if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
  } else if (inet_pton(AF_INET, address, &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
  }
  return name;
}

// Takes descriptors in turn until one is refused; how many were not.
int Fill(ConnectionShares& shares, const char* address, int& next) {
  int count = 0;
  for (; shares.Take(next, Peer(address, 1)); ++next) ++count;
  return count;
}

TEST(ConnectionSharesTest, EachAddressLeavesAQuarterOfWhatItFinds) {
  ConnectionShares shares(1'024);
  int next = 0;
  EXPECT_EQ(Fill(shares, "10.0.0.1", next), 768);
  EXPECT_EQ(Fill(shares, "::ffff:10.0.0.1", next), 0) << "the same, as a socket of both says it";
  EXPECT_EQ(Fill(shares, "2001:db8::1", next), 192);
  EXPECT_EQ(Fill(shares, "2001:db8::2", next), 48);
  EXPECT_EQ(Fill(shares, "10.0.0.2", next), 12);
  EXPECT_EQ(shares.size(), 1'020u);
}

TEST(ConnectionSharesTest, FilesCountAsTaken) {
  ConnectionShares shares(1'024);
  int next = 512;
  EXPECT_EQ(Fill(shares, "10.0.0.1", next), 384);
}

TEST(ConnectionSharesTest, ReusedDescriptorCountsAsClosed) {
  ConnectionShares shares(16);
  int next = 0;
  EXPECT_EQ(Fill(shares, "10.0.0.1", next), 12);
  EXPECT_TRUE(shares.Take(3, Peer("10.0.0.2", 1)));
  EXPECT_EQ(shares.size(), 12u);
  EXPECT_TRUE(shares.Take(4, Peer("10.0.0.1", 2)));
  EXPECT_EQ(shares.size(), 12u);
}

TEST(ConnectionSharesTest, ASweepForgetsWhatWasClosed) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage place = Peer("127.0.0.1", 0);
  socklen_t size = sizeof(sockaddr_in);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  std::vector<UniqueFd> ours, theirs;
  ConnectionShares shares(1'024);
  for (int i = 0; i < 4; ++i) {
    theirs.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(theirs.back().get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    sockaddr_storage peer = {};
    socklen_t peer_size = sizeof peer;
    ours.emplace_back(
        accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size, SOCK_CLOEXEC));
    ASSERT_TRUE(shares.Take(ours.back().get(), peer));
  }
  shares.Sweep();
  EXPECT_EQ(shares.size(), 4u);
  ours[0].Close();                                    // nothing is there
  ASSERT_GE(dup2(listener.get(), ours[1].get()), 0);  // something else is
  ASSERT_GE(dup2(ours[3].get(), ours[2].get()), 0);   // another connection is
  shares.Sweep();
  EXPECT_EQ(shares.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
