// SPDX-License-Identifier: Apache-2.0
// When probes are sent and which way, with an aggregator whose UDP port is silent and whose call
// the test plays.
#include "agent/clock/clock_prober.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <vector>

#include "agent/clock/fake_exchange_sink.h"
#include "agent/clock/stream_prober.h"
#include "lib/base/fake_task_runner.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

// What the test sees of the calls.
struct Calls {
  int open = 0;
  int begun = 0;
  std::vector<uint64_t> asked;
  ProbeStream::Listener* listener = nullptr;  // of the last call
};

class FakeProbeStream final : public ProbeStream {
 public:
  explicit FakeProbeStream(Calls& calls) : calls_(calls) { ++calls_.open; }
  ~FakeProbeStream() override { --calls_.open; }
  void Send(uint64_t sequence) override { calls_.asked.push_back(sequence); }

 private:
  Calls& calls_;
};

class ClockProberTest : public testing::Test {
 protected:
  ClockProberTest() {
    silent_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    auto& address = reinterpret_cast<sockaddr_in&>(access_.address.storage);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    access_.address.length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&access_.address.storage);
    EXPECT_EQ(bind(silent_.get(), name, access_.address.length), 0);
    EXPECT_EQ(getsockname(silent_.get(), name, &access_.address.length), 0);
  }

  void OnTick(ClockProber& prober, int ticks) {
    for (int i = 0; i < ticks; ++i) {
      host_.AdvanceNs(50'000'000);
      prober.OnTick();
      runner_.RunUntilIdle();
    }
  }
  void Reply(uint64_t sequence) {
    host_.AdvanceNs(100'000);
    calls_.listener->OnWritten();
    calls_.listener->OnReply({.sequence = sequence,
                              .reference_receive_ns = 1'000,
                              .reference_send_ns = 1'001,
                              .reference_epoch = 1,
                              .receive_raw_ns = host_.RawNs()});
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeHostClocks host_;
  SeededRandom random_{1};
  ProbeAccess access_;
  UniqueFd silent_;
  Calls calls_;
  FakeExchangeSink sink_;
  UdpProber udp_{host_, runner_, sink_};
  StreamProber stream_{[this](ProbeStream::Listener& listener) {
                         ++calls_.begun;
                         calls_.listener = &listener;
                         return std::make_unique<FakeProbeStream>(calls_);
                       },
                       host_, runner_, sink_};
};

TEST_F(ClockProberTest, ProbesInBurstThenTwicePerSecond) {
  ClockProber prober(ProbeMode::kUdp, udp_, stream_, random_);
  OnTick(prober, 20);
  EXPECT_EQ(udp_.counters().sent, 0u) << "nobody is there";
  prober.OnWelcome(access_);
  OnTick(prober, 10);  // half a second
  EXPECT_GE(udp_.counters().sent, 64u);
  EXPECT_LE(udp_.counters().sent, 68u);
  const uint64_t sent = udp_.counters().sent;
  OnTick(prober, 200);
  EXPECT_EQ(udp_.counters().sent - sent, 80u);
  prober.OnBreak();
  OnTick(prober, 10);
  EXPECT_GE(udp_.counters().sent - sent - 80, 64u);
  prober.OnLost();
  const uint64_t at_end = udp_.counters().sent;
  OnTick(prober, 50);
  EXPECT_EQ(udp_.counters().sent, at_end);
  EXPECT_EQ(calls_.begun, 0);
}

TEST_F(ClockProberTest, FallsBackToCallWhenUdpIsSilent) {
  ClockProber prober(ProbeMode::kAuto, udp_, stream_, random_);
  prober.OnWelcome(access_);
  OnTick(prober, ClockProber::kUnansweredTicksMax);
  EXPECT_EQ(calls_.begun, 0);
  OnTick(prober, 12);
  ASSERT_EQ(calls_.open, 1);
  EXPECT_TRUE(prober.uses_stream());
  ASSERT_EQ(calls_.asked.size(), 1u) << "one question at a time";
  Reply(calls_.asked.back());
  Reply(calls_.asked.back());
  EXPECT_EQ(sink_.exchanges.size(), 2u);
  EXPECT_EQ(sink_.exchanges[0].path, ProbePath::kGrpc);
  const uint64_t sent = udp_.counters().sent;
  OnTick(prober, ClockProber::kRetryTicks);
  EXPECT_EQ(udp_.counters().sent - sent, 4u) << "it is tried again";
}

TEST_F(ClockProberTest, UsesCallImmediatelyWithoutAccess) {
  ClockProber prober(ProbeMode::kAuto, udp_, stream_, random_);
  prober.OnWelcome(std::nullopt);
  OnTick(prober, 12);
  EXPECT_EQ(calls_.begun, 1);
  prober.OnLost();
  EXPECT_EQ(calls_.open, 0);
}

TEST_F(ClockProberTest, SendsNoProbesWhenDisabled) {
  ClockProber prober(ProbeMode::kOff, udp_, stream_, random_);
  prober.OnWelcome(access_);
  prober.OnBreak();
  OnTick(prober, 100);
  EXPECT_EQ(udp_.counters().sent, 0u);
  EXPECT_EQ(calls_.begun, 0);
}

TEST_F(ClockProberTest, RejectsImplausibleReplies) {
  ClockProber prober(ProbeMode::kGrpc, udp_, stream_, random_);
  prober.OnWelcome(access_);
  OnTick(prober, 2);
  ASSERT_EQ(calls_.asked.size(), 1u);
  calls_.listener->OnWritten();
  const ProbeReply good{.sequence = 1,
                        .reference_receive_ns = 5,
                        .reference_send_ns = 6,
                        .reference_epoch = 1,
                        .receive_raw_ns = host_.RawNs()};
  ProbeReply other = good;
  other.sequence = 2;
  ProbeReply backwards = good;
  backwards.reference_send_ns = 4;
  ProbeReply nameless = good;
  nameless.reference_epoch = 0;
  ProbeReply early = good;
  early.receive_raw_ns = 1;
  for (const ProbeReply& bad : {other, backwards, nameless, early}) calls_.listener->OnReply(bad);
  EXPECT_EQ(stream_.counters().refused, 4u);
  calls_.listener->OnReply(good);
  calls_.listener->OnReply(good);
  EXPECT_EQ(sink_.exchanges.size(), 1u);
  EXPECT_EQ(stream_.counters().refused, 5u);
}

TEST_F(ClockProberTest, StartsNewCallWhenCallEnds) {
  ClockProber prober(ProbeMode::kGrpc, udp_, stream_, random_);
  prober.OnWelcome(access_);
  OnTick(prober, 2);
  EXPECT_EQ(calls_.begun, 1);
  calls_.listener->OnClosed(absl::UnavailableError("gone"));
  runner_.RunUntilIdle();
  EXPECT_EQ(calls_.open, 0);
  OnTick(prober, 20);
  EXPECT_EQ(calls_.begun, 2);
}

TEST_F(ClockProberTest, WaitsForALostAnswerASecondAtMost) {
  ClockProber prober(ProbeMode::kGrpc, udp_, stream_, random_);
  prober.OnWelcome(access_);
  OnTick(prober, 1);
  calls_.listener->OnWritten();
  OnTick(prober, 40);
  EXPECT_GE(calls_.asked.size(), 2u);
}

}  // namespace
}  // namespace neurontrace
