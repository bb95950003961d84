// SPDX-License-Identifier: Apache-2.0
// Probes over loopback, from an agent that the test plays: stamps in order, answers no longer than
// questions, silence for strangers.
#include "aggregator/reference/probe_responder.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

namespace neurontrace {
namespace {

bool HasIpv6() {
  const UniqueFd fd(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  return fd.valid() &&
         bind(fd.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0;
}

struct Way {
  std::string host;
  bool v6 = false;  // how it is asked
};

class ProbeResponderTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const auto& [host, v6] = GetParam();
    if (v6 && !HasIpv6()) GTEST_SKIP() << "this machine has no address ::1";
    auto responder = ProbeResponder::Start(host, 0, {clocks_, timescale_, keys_, metrics_});
    ASSERT_TRUE(responder.ok()) << responder.status();
    responder_ = *std::move(responder);
    socket_ = UniqueFd(socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    six.sin6_port = htons(responder_->port());
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2 where all addresses are bound
    if (host == "127.0.0.1") four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    four.sin_port = htons(responder_->port());
    const void* const address = v6 ? static_cast<void*>(&six) : &four;
    ASSERT_EQ(connect(socket_.get(), static_cast<const sockaddr*>(address),
                      v6 ? sizeof(six) : sizeof(four)),
              0);
  }

  void Send(std::string_view packet) {
    ASSERT_EQ(send(socket_.get(), packet.data(), packet.size(), 0),
              static_cast<ssize_t>(packet.size()));
  }
  void Send(const ProbePacket& packet) {
    Send({reinterpret_cast<const char*>(packet.data()), packet.size()});
  }
  // The next packet that comes back. The socket is connected: it comes from where questions go.
  std::string Receive() {
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 10'000) != 1) return "";
    char packet[256];
    const ssize_t bytes = recv(socket_.get(), packet, sizeof(packet), 0);
    return std::string(packet, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  }

  const SystemHostClocks clocks_;
  const ReferenceTimescale timescale_{clocks_, 4, 1'000'000};
  SeededRandom random_{1};
  ProbeKeys keys_{random_};
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  ProbeMetrics metrics_{*registry_};
  std::unique_ptr<ProbeResponder> responder_;
  UniqueFd socket_;
};

TEST_P(ProbeResponderTest, AnswersWithStampsInOrder) {
  const ProbeKeys::Given given = *keys_.Give();
  ProbeCipher cipher(given.key);
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) {
    const uint64_t before = timescale_.NowNs();
    Send(cipher.Encode(ProbeQuestion{given.key_id, sequence}));
    const std::string packet = Receive();
    const uint64_t after = timescale_.NowNs();
    EXPECT_EQ(packet.size(), kProbePacketBytes);
    const auto answer = cipher.DecodeAnswer(packet);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->sequence, sequence);
    EXPECT_EQ(answer->reference_epoch, 4u);
    EXPECT_LE(before, answer->reference_receive_ns);
    EXPECT_LE(answer->reference_receive_ns, answer->reference_send_ns);
    EXPECT_LE(answer->reference_send_ns, after);
  }
  responder_.reset();  // it counts a moment after it has sent
  EXPECT_EQ(metrics_.answered.Value(), 20);
}

TEST_P(ProbeResponderTest, IgnoresUnknownSenders) {
  const ProbeKeys::Given given = *keys_.Give();
  ProbeCipher cipher(given.key);
  SeededRandom other_random(9);
  ProbeCipher stranger(MakeProbeKey(other_random));
  const ProbePacket good = cipher.Encode(ProbeQuestion{given.key_id, 1});
  const std::string text(reinterpret_cast<const char*>(good.data()), good.size());
  Send(std::string(1'000, 'x'));
  Send(text + "x");
  Send(text.substr(1));
  Send(stranger.Encode(ProbeQuestion{given.key_id, 1}));
  Send(stranger.Encode(ProbeQuestion{12'345, 1}));
  Send(good);
  Send(good);
  Send(cipher.Encode(ProbeQuestion{given.key_id, 2}));
  // The answers to the two that are good, and none between or before.
  ASSERT_EQ(cipher.DecodeAnswer(Receive())->sequence, 1u);
  ASSERT_EQ(cipher.DecodeAnswer(Receive())->sequence, 2u);
  EXPECT_EQ(metrics_.refused_malformed.Value(), 3);
  EXPECT_EQ(metrics_.refused_forged.Value(), 1);
  EXPECT_EQ(metrics_.refused_unknown_key.Value(), 1);
  EXPECT_EQ(metrics_.refused_replayed.Value(), 1);
}

TEST_P(ProbeResponderTest, RateLimitsSenders) {
  const ProbeKeys::Given given = *keys_.Give();
  ProbeCipher cipher(given.key);
  // One after the other, so that none is lost on the way.
  uint64_t sequence = 0;
  while (metrics_.refused_too_many.Value() == 0 && sequence < 100'000) {
    Send(cipher.Encode(ProbeQuestion{given.key_id, ++sequence}));
    char packet[256];
    while (recv(socket_.get(), packet, sizeof(packet), MSG_DONTWAIT) > 0) {
    }
  }
  EXPECT_GT(metrics_.refused_too_many.Value(), 0);
  EXPECT_GE(sequence, limits::kProbesAtOnceMax);
}

INSTANTIATE_TEST_SUITE_P(Hosts, ProbeResponderTest,
                         testing::Values(Way{"127.0.0.1"}, Way{"0.0.0.0"}, Way{"0.0.0.0", true},
                                         Way{"[::1]", true}));

TEST(ProbeResponder, SuggestsRemedyWhenPortIsInUse) {
  const SystemHostClocks clocks;
  const ReferenceTimescale timescale(clocks, 1, 0);
  SeededRandom random(1);
  ProbeKeys keys(random);
  prometheus::Registry registry;
  ProbeMetrics metrics(registry);
  const ProbeResponder::Deps deps{clocks, timescale, keys, metrics};
  const auto first = ProbeResponder::Start("127.0.0.1", 0, deps);
  ASSERT_TRUE(first.ok());
  const auto second = ProbeResponder::Start("127.0.0.1", (*first)->port(), deps);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_NE(second.status().message().find("--probe-port"), std::string::npos);
  EXPECT_FALSE(ProbeResponder::Start("203.0.113.1", 0, deps).ok());
}

}  // namespace
}  // namespace neurontrace
