// SPDX-License-Identifier: Apache-2.0
// Taps that misbehave.
#include "agent/source/neuron/tap_source.h"

#include <sys/socket.h>

#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using TapSourceHostileTest = TapSourceTest;

TEST_F(TapSourceHostileTest, DisconnectsATapWhoseRingMakesNoSense) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  const uint64_t broken = tap_.WriteDocument(Document(0, 2, 2), capture_);
  tap_.ring()[broken % FakeTap::kRingBytes + 60] ^= 1;
  Pass(1'000);
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_THAT(status().detail, HasSubstr("wrong checksum"));
  EXPECT_THAT(sink_.Events(), SizeIs(2));
  EXPECT_EQ(listener_.gone, 1);
  sink_.StoreAll();
  source_->StopCapture(capture_);
  EXPECT_TRUE(source_->CaptureFinished(capture_));
}

TEST_F(TapSourceHostileTest, RefusesABufferThatCouldShrink) {
  FakeTap open;
  UniqueFd agent_end = open.Connect();
  const int fd = agent_end.get();
  source_->AddConnection(std::move(agent_end));
  runner_.FireWatch(fd);
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  EXPECT_TRUE(listener_.workers.empty());
}

TEST_F(TapSourceHostileTest, DisconnectsATapThatSendsNonsense) {
  Connect();
  tap_.SendRaw("nonsense that is longer than a header");
  Deliver();
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
}

TEST_F(TapSourceHostileTest, DisconnectsATapThatTalksTooMuch) {
  Connect();
  for (int i = 0; i < 250 && metrics_.taps_misbehaved.load() == 0; ++i) {
    tap_.Answer(TapMessageType::kStart, TapResult::kNone, capture_);
    Deliver();
  }
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
}

TEST_F(TapSourceHostileTest, DropsConnectionsThatSayNothing) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
  const UniqueFd silent(pair[0]);
  source_->AddConnection(UniqueFd(pair[1]));
  Pass(11'000);
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  char byte;
  EXPECT_EQ(recv(silent.get(), &byte, 1, MSG_DONTWAIT), 0) << "hung up";
}

}  // namespace
}  // namespace neurontrace
