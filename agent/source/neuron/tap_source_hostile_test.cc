// SPDX-License-Identifier: Apache-2.0
// Taps that misbehave.
#include "agent/source/neuron/tap_source.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <iterator>

#include "agent/source/neuron/tap/lingering_socket.h"
#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using TapSourceHostileTest = TapSourceTest;

TEST_F(TapSourceHostileTest, DisconnectsTapWithInvalidRing) {
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
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(capture_));
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

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

TEST_F(TapSourceHostileTest, ClosesDescriptorsOfEmptyPacket) {
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    const UniqueFd hostile(pair[0]);
    source_->AddConnection(UniqueFd(pair[1]));
    const int passed[] = {hostile.get(), hostile.get(), hostile.get()};
    FakeTap::SendPacket(hostile.get(), "", passed);
    runner_.FireWatch(pair[1]);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(TapSourceHostileTest, RejectsWakeDescriptorThatCanBlockOnClose) {
  const UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(tcp.valid());
  linger wait = {.l_onoff = 1, .l_linger = 1'000'000};
  ASSERT_EQ(setsockopt(tcp.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
  tap_.wake_to_pass = tcp.get();
  Connect();
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  EXPECT_TRUE(listener_.workers.empty());
  socklen_t size = sizeof wait;
  ASSERT_EQ(getsockopt(tcp.get(), SOL_SOCKET, SO_LINGER, &wait, &size), 0);
  EXPECT_EQ(wait.l_onoff, 0);
}

TEST_F(TapSourceHostileTest, DropsWakeDescriptorThatIsAlwaysReadable) {
  const UniqueFd unconnected(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  tap_.wake_to_pass = unconnected.get();
  Connect();
  ASSERT_THAT(listener_.workers, SizeIs(1));
  ASSERT_EQ(runner_.watches(), 2u) << "its socket, and its wake descriptor";
  runner_.FireAllWatches();
  EXPECT_EQ(runner_.watches(), 1u);
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(1'000);
  EXPECT_THAT(sink_.Events(), SizeIs(2)) << "the timer reads on";
}

// The kernel would close it where it is read, and wait for its other end.
TEST_F(TapSourceHostileTest, TakesOverQueuedDescriptorsOfWakeDescriptor) {
  LingeringSocket lingering;
  int wake[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wake), 0);
  const UniqueFd theirs(wake[0]);
  const UniqueFd ours(wake[1]);
  tap_.wake_to_pass = ours.get();
  Connect();
  ASSERT_EQ(runner_.watches(), 2u);
  const int passed[] = {lingering.fd.get()};
  FakeTap::SendPacket(theirs.get(), "w", passed);
  lingering.fd.Close();
  runner_.FireAllWatches();
  EXPECT_EQ(runner_.watches(), 1u) << "it is not for that";
  EXPECT_THAT(listener_.workers, SizeIs(1));
}

TEST_F(TapSourceHostileTest, DisconnectsATapThatSendsNonsense) {
  Connect();
  tap_.SendRaw("nonsense that is longer than a header");
  Deliver();
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
}

TEST_F(TapSourceHostileTest, DisconnectsTapThatFloods) {
  Connect();
  for (int i = 0; i < 250 && metrics_.taps_misbehaved.load() == 0; ++i) {
    tap_.Answer(TapMessageType::kStart, TapResult::kNone, capture_);
    Deliver();
  }
  EXPECT_EQ(metrics_.taps_misbehaved.load(), 1u);
}

TEST_F(TapSourceHostileTest, DropsSilentConnections) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
  const UniqueFd silent(pair[0]);
  source_->AddConnection(UniqueFd(pair[1]));
  Pass(11'000);
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  char byte;
  EXPECT_EQ(recv(silent.get(), &byte, 1, MSG_DONTWAIT), 0) << "hung up";
}

class TapSourceUsersTest : public TapSourceTest {
 protected:
  // Connections that say nothing, until one is closed at once; how many were not.
  size_t FillAs(std::optional<uid_t> user) {
    user_ = user;
    size_t count = 0;
    while (count < 2 * limits::kTapConnectionsMax && AddSilent()) ++count;
    return count;
  }
  // Returns whether it stays.
  bool AddSilent() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) != 0) {
      ADD_FAILURE() << strerror(errno);
      return false;
    }
    UniqueFd ours(pair[0]);
    source_->AddConnection(UniqueFd(pair[1]));
    char byte;
    if (recv(ours.get(), &byte, 1, MSG_DONTWAIT) == 0) return false;
    held_.push_back(std::move(ours));
    return true;
  }
  void TearDown() override {
    source_.reset();
    held_.clear();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  void SetUp() override {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit many = before_;
    many.rlim_cur = 4 * limits::kTapConnectionsMax;
    if (many.rlim_cur > many.rlim_max) GTEST_SKIP() << "too few files may be open here";
    if (before_.rlim_cur < many.rlim_cur) setrlimit(RLIMIT_NOFILE, &many);
  }

  rlimit before_ = {};
  std::vector<UniqueFd> held_;
};

TEST_F(TapSourceUsersTest, ReservesHalfOfFreeCapacityForOthers) {
  EXPECT_EQ(FillAs(1'000), limits::kTapConnectionsMax / 2);
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  EXPECT_EQ(FillAs(1'001), limits::kTapConnectionsMax / 4);
  EXPECT_EQ(FillAs(0), limits::kTapConnectionsMax / 8) << "root has no more";
  EXPECT_EQ(FillAs(std::nullopt), limits::kTapConnectionsMax / 16);
  user_ = 1'002;
  Connect();
  EXPECT_THAT(listener_.workers, SizeIs(1)) << "who comes last is served";
  held_.clear();
  Pass(11'000);
  EXPECT_EQ(FillAs(1'000), limits::kTapConnectionsMax / 2) << "who has gone is not counted";
}

TEST_F(TapSourceUsersTest, WorkersThatHungUpCountToo) {
  const auto come = [this](uint64_t start_ticks) {
    SetProcessAlive(true, start_ticks);  // each another process
    FakeTap tap;
    tap.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    UniqueFd agent_end = tap.Connect();
    agent_fd_ = agent_end.get();
    source_->AddConnection(std::move(agent_end));
    Deliver();
    tap.HangUp();
    if (metrics_.taps_refused.load() == 0) Deliver();
  };
  for (uint64_t i = 1; i <= limits::kWorkersPerAgentMax / 2; ++i) come(i);
  EXPECT_EQ(metrics_.taps_refused.load(), 0u);
  come(limits::kWorkersPerAgentMax);
  EXPECT_EQ(metrics_.taps_refused.load(), 1u);
  EXPECT_EQ(metrics_.taps_connected.load(), limits::kWorkersPerAgentMax / 2);
  user_ = 1'001;
  SetProcessAlive(true);
  Connect();
  EXPECT_EQ(metrics_.taps_connected.load(), limits::kWorkersPerAgentMax / 2 + 1);
}

}  // namespace
}  // namespace neurontrace
