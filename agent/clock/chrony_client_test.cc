// SPDX-License-Identifier: Apache-2.0
// Asking a chronyd that this test plays, over both of its sockets.
#include "agent/clock/chrony_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "agent/clock/chrony_test_support.h"
#include "lib/base/event_loop.h"

namespace neurontrace {
namespace {

// A socket where a chronyd would have it.
struct Chronyd {
  UniqueFd socket;
  sockaddr_storage from{};
  socklen_t from_length = 0;

  // The sequence of the next question; 0 where none came.
  uint32_t Receive() {
    pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 10'000) != 1) return 0;
    char packet[256];
    from_length = sizeof(from);
    const ssize_t bytes = recvfrom(socket.get(), packet, sizeof(packet), 0,
                                   reinterpret_cast<sockaddr*>(&from), &from_length);
    if (bytes != static_cast<ssize_t>(kChronyPacketBytes)) return 0;
    uint32_t sequence;
    memcpy(&sequence, packet + 8, sizeof(sequence));
    return ntohl(sequence);
  }
  void Answer(const std::string& packet) {
    ASSERT_EQ(sendto(socket.get(), packet.data(), packet.size(), 0,
                     reinterpret_cast<const sockaddr*>(&from), from_length),
              static_cast<ssize_t>(packet.size()));
  }
};

class ChronyClientTest : public testing::Test {
 protected:
  ChronyClientTest() {
    std::string pattern = testing::TempDir() + "chrony.XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~ChronyClientTest() override { std::filesystem::remove_all(directory_); }

  Chronyd ListenUnix() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/chronyd.sock";
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Chronyd chronyd{UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0))};
    EXPECT_EQ(bind(chronyd.socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    return chronyd;
  }
  Chronyd ListenUdp() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    Chronyd chronyd{UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))};
    EXPECT_EQ(bind(chronyd.socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    getsockname(chronyd.socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    return chronyd;
  }
  // Runs the loop until the client has looked at `answers` and `refused` packets.
  void RunUntil(const ChronyClient& client, size_t answers, uint64_t refused) {
    std::function<void()> look = [&] {
      if (answers_.size() >= answers && client.refused() >= refused) return loop_.Quit();
      loop_.PostDelayedTask(look, 1'000'000);
    };
    loop_.PostDelayedTask([this] { loop_.Quit(); }, 10'000'000'000);
    loop_.PostTask(look);
    loop_.Run();
  }

  std::string directory_;
  uint16_t port_ = 0;
  EventLoop loop_;
  SeededRandom random_{5};
  std::vector<ChronyTracking> answers_;
  ChronyClient::OnAnswer on_answer_ = [this](const ChronyTracking& t) { answers_.push_back(t); };
};

TEST_F(ChronyClientTest, QueriesUnixSocketAndRemovesClientSocket) {
  Chronyd chronyd = ListenUnix();
  {
    ChronyClient client({directory_, 0}, loop_, random_, on_answer_);
    ASSERT_TRUE(client.Ask());
    const uint32_t sequence = chronyd.Receive();
    chronyd.Answer("nonsense");
    chronyd.Answer(ChronyReply({}).Encode(sequence + 1));
    chronyd.Answer(ChronyReply({.stratum = 2}).Encode(sequence));
    chronyd.Answer(ChronyReply({.stratum = 9}).Encode(sequence));  // twice
    RunUntil(client, 1, 3);
    ASSERT_EQ(answers_.size(), 1u);
    EXPECT_EQ(answers_[0].stratum, 2);
    EXPECT_EQ(client.refused(), 3u);
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory_)) ++files;
  EXPECT_EQ(files, 1u) << "only chronyd's own";
}

TEST_F(ChronyClientTest, FallsBackToUdpWithoutUnixSocket) {
  Chronyd chronyd = ListenUdp();
  ChronyClient client({directory_ + "/none", port_}, loop_, random_, on_answer_);
  ASSERT_TRUE(client.Ask());
  chronyd.Answer(ChronyReply({}).Encode(chronyd.Receive()));
  RunUntil(client, 1, 0);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].stratum, 3);
}

TEST_F(ChronyClientTest, TriesTheOtherSocketWhenOneDoesNotAnswer) {
  const Chronyd silent = ListenUnix();
  Chronyd chronyd = ListenUdp();
  ChronyClient client({directory_, port_}, loop_, random_, on_answer_);
  ASSERT_TRUE(client.Ask());
  ASSERT_TRUE(client.Ask());
  chronyd.Answer(ChronyReply({}).Encode(chronyd.Receive()));
  RunUntil(client, 1, 0);
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(ChronyClientTest, FailsWithoutAnySocket) {
  ChronyClient client({directory_ + "/none", 0}, loop_, random_, on_answer_);
  EXPECT_FALSE(client.Ask());
}

}  // namespace
}  // namespace neurontrace
