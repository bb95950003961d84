// SPDX-License-Identifier: Apache-2.0
// Any packets as a tap's at the agent's socket, with any number of descriptors: mode,
// length (two bytes) and bytes of each. No crash, no descriptor left open, and what a listener
// hears is clean.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "agent/source/neuron/tap/tap_session.h"
#include "lib/base/clean_text.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

constexpr uint8_t kWellFormed = 1;  // magic, version and length of the header are right
constexpr uint8_t kSocketSecond = 2;
constexpr int kDescriptorsShift = 2;
constexpr size_t kDescriptorsMax = 9;

void Check(bool good) {
  if (!good) std::abort();
}

class Ear final : public TapSession::Listener {
 public:
  absl::Status OnGreeting(TapSession&, TapGreeting greeting) override {
    Check(greeting.buffer.valid() && greeting.wake.valid());
    Check(greeting.tap_version == CleanText(greeting.tap_version, greeting.tap_version.size()));
    return absl::OkStatus();
  }
  void OnReport(TapSession&, const TapReport& report) override {
    Check(report.detail.size() <= kTapStatusDetailBytesMax);
    Check(report.detail == CleanText(report.detail, report.detail.size()));
  }
  void OnClosed(TapSession&, const absl::Status&) override { closed = true; }
  bool closed = false;
};

void SendPacket(int socket, std::vector<char> bytes, uint8_t mode) {
  if ((mode & kWellFormed) != 0) {
    bytes.resize(std::max(bytes.size(), sizeof(TapMessageHeader)));
    TapMessageHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.magic = kTapMessageMagic;
    header.version = kTapProtocolVersion;
    header.length = static_cast<uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  iovec part = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const size_t count = std::min<size_t>(mode >> kDescriptorsShift, kDescriptorsMax);
  std::vector<int> descriptors(count, STDIN_FILENO);
  if (count > 1 && (mode & kSocketSecond) != 0) descriptors[1] = socket;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))] = {};
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), count * sizeof(int));
  }
  sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Of the first ones: a new one is the lowest that is free, and a run has few at once.
constexpr int kDescriptorsInspected = 64;
std::bitset<kDescriptorsInspected> OpenDescriptors() {
  std::bitset<kDescriptorsInspected> open;
  for (int fd = 0; fd < kDescriptorsInspected; ++fd) open[fd] = fcntl(fd, F_GETFD) >= 0;
  return open;
}

void Fuzz(std::string_view data) {
  const std::bitset<kDescriptorsInspected> before = OpenDescriptors();
  {
    int pair[2];
    Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    const UniqueFd tap(pair[0]);
    FakeClock clock;
    FakeTaskRunner runner(clock);
    Ear ear;
    PeerCloser closer(0);
    TapSession session(PeerFd(UniqueFd(pair[1]), closer), closer, runner, clock, ear);
    constexpr size_t kBefore = 3;
    while (!ear.closed && data.size() >= kBefore) {
      const auto mode = static_cast<uint8_t>(data[0]);
      const auto length =
          static_cast<size_t>(static_cast<uint8_t>(data[1]) | static_cast<uint8_t>(data[2]) << 8);
      const std::string_view bytes = data.substr(kBefore, length);
      SendPacket(tap.get(), {bytes.begin(), bytes.end()}, mode);
      data.remove_prefix(kBefore + bytes.size());
      runner.FireWatch(pair[1]);
    }
  }
  Check(OpenDescriptors() == before);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
