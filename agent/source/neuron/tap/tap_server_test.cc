// SPDX-License-Identifier: Apache-2.0
// The socket in the file system: who may connect, what is replaced and what is not.
#include "agent/source/neuron/tap/tap_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// Counts and closes the connections.
class FakeTapServerListener final : public TapServer::Listener {
 public:
  bool CanAccept() override { return can_accept; }
  void OnAccepted(UniqueFd) override { ++accepted; }

  bool can_accept = true;
  int accepted = 0;
};

class TapServerTest : public ::testing::Test {
 protected:
  TapServerTest() : runner_(clock_) {
    char name[] = "/tmp/neurontrace_XXXXXX";
    directory_ = mkdtemp(name);
    options_.path = directory_ + "/run/agent.sock";
  }
  ~TapServerTest() override { std::filesystem::remove_all(directory_); }
  absl::StatusOr<std::unique_ptr<TapServer>> Listen() {
    return TapServer::Listen(options_, runner_, listener_);
  }
  bool CanConnect() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, options_.path.c_str(), sizeof address.sun_path - 1);
    const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  FakeClock clock_;
  FakeTaskRunner runner_;
  std::string directory_;
  TapServer::Options options_;
  FakeTapServerListener listener_;
};

TEST_F(TapServerTest, RefusedPeerWaits) {
  const auto server = Listen();
  ASSERT_TRUE(server.ok()) << server.status();
  listener_.can_accept = false;
  ASSERT_TRUE(CanConnect());
  runner_.FireAllWatches();
  EXPECT_EQ(listener_.accepted, 0);
  EXPECT_EQ(runner_.watches(), 0u) << "or it would fire without end";
  listener_.can_accept = true;
  runner_.AdvanceNs(60'000'000'000);
  runner_.FireAllWatches();
  EXPECT_EQ(listener_.accepted, 1);
}

TEST_F(TapServerTest, ListensWithTheModeAskedFor) {
  const auto server = Listen();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(CanConnect());
  struct stat about = {};
  ASSERT_EQ(stat(options_.path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0660u);
}

TEST_F(TapServerTest, TheUmaskTakesNothingFromTheModeAskedFor) {
  const mode_t before = umask(0077);
  options_.mode = 0666;
  const auto server = Listen();
  umask(before);
  ASSERT_TRUE(server.ok()) << server.status();
  struct stat about = {};
  ASSERT_EQ(stat(options_.path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0666u);
}

TEST_F(TapServerTest, ReplacesASocketThatNobodyServes) {
  ASSERT_TRUE(Listen().ok());
  // As a killed agent leaves it.
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, options_.path.c_str(), sizeof address.sun_path - 1);
  {
    const UniqueFd stale(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    ASSERT_EQ(bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_FALSE(CanConnect());
  const auto server = Listen();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(CanConnect());
}

TEST_F(TapServerTest, LeavesARunningAgentAlone) {
  const auto first = Listen();
  ASSERT_TRUE(first.ok());
  const auto second = Listen();
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another agent"));
  EXPECT_TRUE(CanConnect());
}

TEST_F(TapServerTest, LeavesFilesAlone) {
  std::filesystem::create_directories(directory_ + "/run");
  std::ofstream(options_.path) << "precious";
  EXPECT_TRUE(absl::IsInvalidArgument(Listen().status()));
  EXPECT_TRUE(std::filesystem::exists(options_.path));
}

TEST_F(TapServerTest, RefusesAPathThatIsTooLong) {
  options_.path = directory_ + "/" + std::string(200, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(Listen().status()));
}

TEST_F(TapServerTest, RemovesItsSocketAtTheEnd) {
  ASSERT_TRUE(Listen().ok());
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

}  // namespace
}  // namespace neurontrace
