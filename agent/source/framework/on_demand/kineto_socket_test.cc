// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/source/framework/on_demand/kineto_messages.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using namespace std::string_literals;

// Remembers who asked, and gives everybody the same order.
class FakeOrders final : public KinetoOrders {
 public:
  std::string OnRequest(const KinetoClient& client, bool takes_activities) override {
    clients.push_back(client);
    took.push_back(takes_activities);
    return config;
  }
  void OnNotDelivered(const KinetoClient&) override { ++not_delivered; }
  std::string config;
  std::vector<KinetoClient> clients;
  std::vector<bool> took;
  int not_delivered = 0;
};

// A worker's side: a datagram socket with a name in the directory.
class Peer {
 public:
  explicit Peer(const std::string& path) : path_(path) {
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = Address(path);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  static sockaddr_un Address(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
  }
  void Send(const std::string& to, const std::string& datagram) const {
    const sockaddr_un address = Address(to);
    EXPECT_EQ(sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                     reinterpret_cast<const sockaddr*>(&address), sizeof address),
              static_cast<ssize_t>(datagram.size()));
  }
  // Returns the next answer, or "none".
  std::string Receive() const {
    char data[4096];
    const ssize_t size = recv(fd_.get(), data, sizeof data, MSG_DONTWAIT);
    return size < 0 ? "none" : std::string(data, static_cast<size_t>(size));
  }

 private:
  const std::string path_;
  UniqueFd fd_;
};

class KinetoSocketTest : public ::testing::Test {
 protected:
  KinetoSocketTest() {
    std::string pattern = ::testing::TempDir() + "kineto_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    directory_ = folder_ + "/k";
  }
  ~KinetoSocketTest() override {
    socket_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::Status Listen() {
    auto made = KinetoSocket::Listen({.directory = directory_}, runner_, orders_, metrics_);
    if (!made.ok()) return made.status();
    socket_ = std::move(*made);
    return absl::OkStatus();
  }
  static std::string Request(char kind = 3) {
    return "\x14\0\0\0\0\0\0\0req"s + std::string(29, '\0') + std::string(1, kind) + "\0\0\0"s +
           "\1\0\0\0"s + std::string(8, '\0') + "\x09\0\0\0"s;
  }
  std::string dynolog() const { return directory_ + "/dynolog"; }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeOrders orders_;
  AgentSourceMetrics metrics_;
  std::string folder_;
  std::string directory_;
  std::unique_ptr<KinetoSocket> socket_;
};

TEST_F(KinetoSocketTest, AnswersAWorkerThatTheKernelIdentifies) {
  ASSERT_TRUE(Listen().ok());
  const Peer worker(directory_ + "/dynoconfigclient1");
  worker.Send(dynolog(), Request(0));
  runner_.FireAllWatches();
  EXPECT_EQ(worker.Receive(), KinetoAnswer("")) << "nothing to do";
  orders_.config = "A=1\n";
  worker.Send(dynolog(), Request());
  runner_.FireAllWatches();
  EXPECT_EQ(worker.Receive(), KinetoAnswer("A=1\n"));
  ASSERT_EQ(orders_.clients.size(), 2u);
  EXPECT_EQ(orders_.clients[0].pid, static_cast<uint32_t>(getpid())) << "and not its claim, 9";
  EXPECT_EQ(orders_.clients[0].uid, getuid());
  EXPECT_EQ(orders_.took, (std::vector<bool>{false, true}));
  EXPECT_EQ(metrics_.kineto_orders, 1u);
}

TEST_F(KinetoSocketTest, AnswersAnIntroduction) {
  ASSERT_TRUE(Listen().ok());
  const Peer worker(directory_ + "/dynoconfigclient1");
  worker.Send(dynolog(), "\x10\0\0\0\0\0\0\0ctxt"s + std::string(28 + 16, '\0'));
  runner_.FireAllWatches();
  EXPECT_EQ(worker.Receive(), KinetoContextAnswer());
  EXPECT_TRUE(orders_.clients.empty());
}

TEST_F(KinetoSocketTest, RefusesAndCountsWhatIsMalformedOrTooLong) {
  ASSERT_TRUE(Listen().ok());
  const Peer worker(directory_ + "/dynoconfigclient1");
  worker.Send(dynolog(), "");
  worker.Send(dynolog(), "hello");
  worker.Send(dynolog(), std::string(100'000, 'x'));
  runner_.FireAllWatches();
  EXPECT_EQ(worker.Receive(), "none");
  EXPECT_EQ(metrics_.kineto_datagrams, 3u);
  EXPECT_EQ(metrics_.kineto_datagrams_refused, 3u);
}

TEST_F(KinetoSocketTest, AnswersOnlySocketsOfTheDirectory) {
  ASSERT_TRUE(Listen().ok());
  const Peer elsewhere(folder_ + "/other");
  elsewhere.Send(dynolog(), Request());
  std::filesystem::create_directory(directory_ + "/below");
  const Peer below(directory_ + "/below/x");
  below.Send(dynolog(), Request());
  runner_.FireAllWatches();
  EXPECT_EQ(elsewhere.Receive(), "none");
  EXPECT_EQ(below.Receive(), "none");
  // One that put a link in the place of its socket, to have the agent write to somebody else.
  const Peer victim(folder_ + "/victim");
  const Peer sly(directory_ + "/sly");
  sly.Send(dynolog(), Request());
  std::filesystem::remove(directory_ + "/sly");
  std::filesystem::create_symlink(folder_ + "/victim", directory_ + "/sly");
  runner_.FireAllWatches();
  EXPECT_EQ(victim.Receive(), "none");
  EXPECT_TRUE(orders_.clients.empty());
  EXPECT_EQ(metrics_.kineto_datagrams_refused, 3u);
}

TEST_F(KinetoSocketTest, ReportsAnOrderThatWasNotDelivered) {
  ASSERT_TRUE(Listen().ok());
  orders_.config = "A=1\n";
  {
    const Peer worker(directory_ + "/dynoconfigclient1");
    worker.Send(dynolog(), Request());
  }
  // Its file is still there, and nobody reads.
  runner_.FireAllWatches();
  EXPECT_EQ(orders_.not_delivered, 1);
  EXPECT_EQ(metrics_.kineto_answers_failed, 1u);
  EXPECT_EQ(metrics_.kineto_orders, 0u);
}

TEST_F(KinetoSocketTest, RemovesSocketsOfEndedWorkersAndNothingElse) {
  ASSERT_TRUE(Listen().ok());
  const std::string dead = directory_ + "/dynoconfigclient1";
  const std::string alive = directory_ + "/dynoconfigclient2";
  const std::string foreign = directory_ + "/other";
  const std::string file = directory_ + "/dynoconfigclient3";
  const std::string link = directory_ + "/dynoconfigclient4";
  const Peer worker(alive);
  for (const std::string& path : {dead, foreign}) Peer{path};
  std::ofstream(file) << "x";
  std::filesystem::create_symlink(foreign, link);
  runner_.AdvanceNs(KinetoSocket::kSweepPeriodNs);
  EXPECT_TRUE(std::filesystem::exists(dead)) << "its process may be binding it";
  runner_.AdvanceNs(KinetoSocket::kSweepPeriodNs);
  EXPECT_FALSE(std::filesystem::exists(dead));
  for (const std::string& path : {alive, foreign, file, link, dynolog()}) {
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_EQ(metrics_.kineto_sockets_removed, 1u);
  socket_.reset();
  runner_.AdvanceNs(KinetoSocket::kSweepPeriodNs);
}

TEST_F(KinetoSocketTest, MakesTheDirectoryForItsUserAndGroupAlone) {
  const mode_t before = umask(0);
  ASSERT_TRUE(Listen().ok());
  umask(before);
  struct stat about = {};
  ASSERT_EQ(stat(directory_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777u, 01770u);
  ASSERT_EQ(stat(dynolog().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777u, 0660u);
}

TEST_F(KinetoSocketTest, ClosesADirectoryThatWasOpenToEverybody) {
  std::filesystem::create_directory(directory_);
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  ASSERT_TRUE(Listen().ok());
  struct stat about = {};
  ASSERT_EQ(stat(directory_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777u, 01770u);
}

TEST_F(KinetoSocketTest, ReplacesWhatAnEarlierAgentLeftAndNotOneThatRuns) {
  ASSERT_TRUE(Listen().ok());
  auto second = KinetoSocket::Listen({.directory = directory_}, runner_, orders_, metrics_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(dynolog()));
  { const Peer stale(dynolog()); }
  EXPECT_TRUE(Listen().ok());
}

TEST_F(KinetoSocketTest, RefusesALinkAndAPathThatIsTooLong) {
  std::filesystem::create_directory(folder_ + "/real");
  std::filesystem::create_symlink(folder_ + "/real", directory_);
  EXPECT_EQ(Listen().code(), absl::StatusCode::kFailedPrecondition);
  directory_ = folder_ + "/" + std::string(120, 'x');
  EXPECT_EQ(Listen().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace neurontrace
