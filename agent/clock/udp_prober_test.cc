// SPDX-License-Identifier: Apache-2.0
// Probing an aggregator that this test plays, over loopback.
#include "agent/clock/udp_prober.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <cstring>
#include <functional>
#include <vector>

#include "agent/clock/fake_exchange_sink.h"
#include "lib/base/event_loop.h"

namespace neurontrace {
namespace {

constexpr uint64_t kKeyId = 77;
constexpr uint64_t kReferenceOffset = 1'000'000'000'000;

class UdpProberTest : public testing::Test {
 protected:
  UdpProberTest() {
    SeededRandom random(1);
    access_.key_id = kKeyId;
    access_.key = MakeProbeKey(random);
    cipher_.emplace(access_.key);
    socket_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    auto& address = reinterpret_cast<sockaddr_in&>(access_.address.storage);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    access_.address.length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&access_.address.storage);
    EXPECT_EQ(bind(socket_.get(), name, access_.address.length), 0);
    EXPECT_EQ(getsockname(socket_.get(), name, &access_.address.length), 0);
    EXPECT_TRUE(prober_.Connect(access_).ok());
  }

  // The next question that came.
  ProbeQuestion Receive() {
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&readable, 1, 10'000), 1);
    char packet[256];
    from_length_ = sizeof(from_);
    const ssize_t bytes = recvfrom(socket_.get(), packet, sizeof(packet), 0,
                                   reinterpret_cast<sockaddr*>(&from_), &from_length_);
    const auto question = cipher_->DecodeQuestion({packet, static_cast<size_t>(bytes)});
    EXPECT_TRUE(question.has_value());
    return question.value_or(ProbeQuestion{});
  }
  void Answer(const ProbePacket& packet) {
    EXPECT_EQ(sendto(socket_.get(), packet.data(), packet.size(), 0,
                     reinterpret_cast<const sockaddr*>(&from_), from_length_),
              static_cast<ssize_t>(packet.size()));
  }
  ProbeAnswer ReplyTo(const ProbeQuestion& question) const {
    const uint64_t now = clocks_.RawNs() + kReferenceOffset;
    return {.key_id = question.key_id,
            .sequence = question.sequence,
            .reference_receive_ns = now,
            .reference_send_ns = now,
            .reference_epoch = 3};
  }
  // Runs the loop until the prober has looked at so many packets.
  void RunUntilSeen(uint64_t packets) {
    std::function<void()> look = [&] {
      const auto& counters = prober_.counters();
      if (counters.answered + counters.refused + counters.late >= packets) return loop_.Quit();
      loop_.PostDelayedTask(look, 1'000'000);
    };
    loop_.PostDelayedTask([this] { loop_.Quit(); }, 10'000'000'000);
    loop_.PostTask(look);
    loop_.Run();
  }

  const SystemHostClocks clocks_;
  EventLoop loop_;
  ProbeAccess access_;
  std::optional<ProbeCipher> cipher_;
  UniqueFd socket_;
  sockaddr_storage from_{};
  socklen_t from_length_ = 0;
  FakeExchangeSink sink_;
  UdpProber prober_{clocks_, loop_, sink_};
};

TEST_F(UdpProberTest, MakesExchangesThatHoldTheTruth) {
  prober_.Send(4);
  for (int i = 0; i < 4; ++i) Answer(cipher_->Encode(ReplyTo(Receive())));
  RunUntilSeen(4);
  ASSERT_EQ(sink_.exchanges.size(), 4u);
  for (const ClockExchange& exchange : sink_.exchanges) {
    EXPECT_EQ(exchange.path, ProbePath::kUdp);
    EXPECT_EQ(exchange.reference_epoch, 3u);
    // Reference minus raw is kReferenceOffset in truth.
    EXPECT_LE(exchange.reference_send_ns - exchange.receive_raw_ns, kReferenceOffset);
    EXPECT_GE(exchange.reference_receive_ns - exchange.send_raw_ns, kReferenceOffset);
  }
  EXPECT_EQ(prober_.counters().sent, 4u);
}

TEST_F(UdpProberTest, CountsEachReplyOnceAndIgnoresUnknownSenders) {
  prober_.Send(2);
  const ProbeQuestion first = Receive();
  const ProbeQuestion second = Receive();
  SeededRandom random(9);
  ProbeCipher stranger(MakeProbeKey(random));
  Answer(stranger.Encode(ReplyTo(first)));
  Answer(cipher_->Encode(first));  // a question is no answer
  ProbeAnswer backwards = ReplyTo(first);
  backwards.reference_send_ns -= 1;
  Answer(cipher_->Encode(backwards));
  ProbeAnswer unasked = ReplyTo(first);
  unasked.sequence = 1'000;
  Answer(cipher_->Encode(unasked));
  Answer(cipher_->Encode(ReplyTo(second)));  // overtakes the first
  Answer(cipher_->Encode(ReplyTo(first)));
  Answer(cipher_->Encode(ReplyTo(first)));
  RunUntilSeen(7);
  EXPECT_EQ(sink_.exchanges.size(), 2u);
  EXPECT_EQ(prober_.counters().refused, 3u);
  EXPECT_EQ(prober_.counters().late, 2u);
}

TEST_F(UdpProberTest, RestartsWithNewKey) {
  prober_.Send(1);
  const ProbeQuestion old = Receive();
  const ProbePacket old_answer = cipher_->Encode(ReplyTo(old));
  SeededRandom random(5);
  access_.key = MakeProbeKey(random);
  access_.key_id = 78;
  cipher_.emplace(access_.key);
  ASSERT_TRUE(prober_.Connect(access_).ok());
  prober_.Send(1);
  const ProbeQuestion question = Receive();
  EXPECT_EQ(question.key_id, 78u);
  Answer(old_answer);
  Answer(cipher_->Encode(ReplyTo(question)));
  RunUntilSeen(2);
  EXPECT_EQ(sink_.exchanges.size(), 1u);
  EXPECT_EQ(prober_.counters().refused, 1u);
}

TEST_F(UdpProberTest, SendsNothingWhenDisconnected) {
  prober_.Disconnect();
  prober_.Send(3);
  EXPECT_EQ(prober_.counters().sent, 0u);
}

TEST(ProbeAddressOfPeer, ParsesGrpcPeerNames) {
  const auto four = ProbeAddressOfPeer("ipv4:10.1.2.3:9400", 9401);
  ASSERT_TRUE(four.ok());
  const auto& in = reinterpret_cast<const sockaddr_in&>(four->storage);
  EXPECT_EQ(ntohl(in.sin_addr.s_addr), 0x0a010203u);
  EXPECT_EQ(ntohs(in.sin_port), 9'401);
  for (const char* const peer : {"ipv6:[fd00::5]:9400", "ipv6:%5Bfd00::5%5D:9400"}) {
    const auto six = ProbeAddressOfPeer(peer, 9'401);
    ASSERT_TRUE(six.ok()) << peer;
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(six->storage);
    EXPECT_EQ(in6.sin6_addr.s6_addr[0], 0xfd);
    EXPECT_EQ(in6.sin6_addr.s6_addr[15], 5);
    EXPECT_EQ(ntohs(in6.sin6_port), 9'401);
  }
  for (const char* const peer : {"", "unix:/run/x.sock", "ipv4:", "ipv4:10.1.2.3", "ipv4:host:1",
                                 "ipv6:fd00::5:9400", "ipv6:[]:1", "ipv6:[fd00::5"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ProbeAddressOfPeer(peer, 1).status())) << peer;
  }
}

}  // namespace
}  // namespace neurontrace
