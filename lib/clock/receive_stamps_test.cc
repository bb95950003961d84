// SPDX-License-Identifier: Apache-2.0
// Kernel stamps on raw: never too early, whatever happens to REALTIME, and good when nothing does;
// and that this machine's kernel gives such stamps.
#include "lib/clock/receive_stamps.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include "lib/base/unique_fd.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

TEST(ReceiveStamps, TakeAwayTheTimeUntilTheProgramLooks) {
  FakeHostClocks clocks;
  clocks.SteerPpm(20);
  ReceiveStamps stamps(clocks);
  stamps.Poll();
  clocks.AdvanceNs(100'000'000);
  const uint64_t came_raw = clocks.RawNs();
  const uint64_t stamp = clocks.realtime_ns();
  clocks.AdvanceNs(60'000);
  stamps.Poll();
  const uint64_t on_raw = stamps.OnRaw(stamp);
  EXPECT_GE(on_raw, came_raw);
  EXPECT_LT(on_raw, came_raw + 250);  // the bracket and 0.06 % of 60 us
  EXPECT_EQ(stamps.without_kernel(), 0u);
}

TEST(ReceiveStamps, FallBackToReadTimeWithoutStamp) {
  FakeHostClocks clocks;
  ReceiveStamps stamps(clocks);
  stamps.Poll();
  EXPECT_EQ(stamps.OnRaw(clocks.realtime_ns()), clocks.RawNs() + 100);
  clocks.AdvanceNs(1'000'000);
  stamps.Poll();
  EXPECT_EQ(stamps.OnRaw(std::nullopt), clocks.RawNs() + 100);
  EXPECT_EQ(stamps.OnRaw(clocks.realtime_ns() + 1'000'000'000), clocks.RawNs() + 100);
  EXPECT_EQ(stamps.OnRaw(clocks.realtime_ns() - 1'000'000'000), clocks.RawNs() + 100);
  EXPECT_EQ(stamps.without_kernel(), 4u);
}

// The property that bounds stand on: never before the packet came.
TEST(ReceiveStamps, AreNeverTooEarlyWhenRealtimeIsSetOrSlewed) {
  for (const int64_t step_ns : {-8'000'000, -1'000'000, 1'000'000, 8'000'000, 1'000'000'000}) {
    FakeHostClocks clocks;
    ReceiveStamps stamps(clocks);
    stamps.Poll();
    clocks.AdvanceNs(100'000'000);
    const uint64_t came_raw = clocks.RawNs();
    const uint64_t stamp = clocks.realtime_ns();
    clocks.AdvanceNs(30'000);
    clocks.StepRealtimeNs(step_ns);
    clocks.AdvanceNs(30'000);
    stamps.Poll();
    EXPECT_GE(stamps.OnRaw(stamp), came_raw) << step_ns;
  }
  for (const double ppm : {-80'000.0, -500.0, 500.0, 80'000.0}) {
    for (const bool is_seen : {false, true}) {
      FakeHostClocks clocks;
      if (is_seen) {
        clocks.SteerPpm(ppm);
      } else {
        clocks.SlewUnseenPpm(ppm);
      }
      ReceiveStamps stamps(clocks);
      stamps.Poll();
      clocks.AdvanceNs(10'000'000);
      const uint64_t came_raw = clocks.RawNs();
      const uint64_t stamp = clocks.realtime_ns();
      clocks.AdvanceNs(60'000);
      stamps.Poll();
      EXPECT_GE(stamps.OnRaw(stamp), came_raw) << ppm << " seen " << is_seen;
    }
  }
}

TEST(ReceiveStamps, ComeFromThisKernel) {
  const UniqueFd receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(receiver.get(), name, length), 0);
  ASSERT_EQ(getsockname(receiver.get(), name, &length), 0);
  ASSERT_TRUE(EnableReceiveStamps(receiver.get()).ok());

  const SystemHostClocks clocks;
  ReceiveStamps stamps(clocks);
  stamps.Poll();
  // The kernel begins to stamp some time after the first socket of the machine has asked for it.
  std::optional<uint64_t> stamp;
  uint64_t sent_raw = clocks.RawNs();
  const uint64_t give_up_raw = sent_raw + 10'000'000'000;
  while (!stamp && sent_raw < give_up_raw) {
    sent_raw = clocks.RawNs();
    ASSERT_EQ(sendto(sender.get(), "x", 1, 0, name, length), 1);
    pollfd readable{.fd = receiver.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&readable, 1, 10'000), 1);
    char byte;
    alignas(cmsghdr) char control[kReceiveControlBytes];
    iovec buffer{.iov_base = &byte, .iov_len = 1};
    msghdr message{.msg_iov = &buffer,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof(control)};
    ASSERT_EQ(recvmsg(receiver.get(), &message, 0), 1);
    stamp = ReceiveStampNs(message);
  }
  stamps.Poll();
  ASSERT_TRUE(stamp.has_value());
  const uint64_t on_raw = stamps.OnRaw(stamp);
  EXPECT_GE(on_raw, sent_raw);
  EXPECT_LE(on_raw, clocks.RawNs());
}

}  // namespace
}  // namespace neurontrace
