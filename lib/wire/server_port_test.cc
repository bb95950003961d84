// SPDX-License-Identifier: Apache-2.0
// A real server on loopback that strangers take the descriptors of.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "lib/wire/grpc_channel.h"
#include "lib/wire/server_port.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {
namespace {

class PeerService final : public v1::OperatorService::Service {
 public:
  grpc::Status GetCapture(grpc::ServerContext* context, const v1::CaptureReference*,
                          v1::Capture* reply) override {
    reply->set_capture_id(context->peer());
    return grpc::Status::OK;
  }
};

UniqueFd NewSocket() { return UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

UniqueFd AnyDescriptor() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// From 127.0.0.`from`.
void Connect(const UniqueFd& socket, uint16_t port, uint32_t from = 1) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

// The process's limit of open files, as it was when this goes.
class FileLimit {
 public:
  FileLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimit() { Restore(); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

  int Set(rlim_t files) const {
    const rlimit limit = {.rlim_cur = files, .rlim_max = before_.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &limit);
  }
  int Restore() const { return setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// Counts the connections that were closed, by reason.
class ClosedConnections final : public ServerPort::Observer {
 public:
  void OnRefused(ServerPort::Refusal why) override {
    ++(why == ServerPort::Refusal::kAddress ? crowded : refused);
  }

  std::atomic<int> refused = 0;
  std::atomic<int> crowded = 0;
};

class ServerPortTest : public ::testing::Test {
 protected:
  void Start(const std::string& address, int descriptors_max) {
    auto port = ServerPort::Listen(
        {.address = address, .descriptors_max = descriptors_max, .observer = &closed_});
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    const std::shared_ptr<grpc::ServerCredentials> plain[] = {grpc::InsecureServerCredentials()};
    port_->AddTo(builder, plain);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_->Start();
  }
  void TearDown() override {
    port_.reset();
    if (server_ != nullptr) server_->Shutdown();
  }

  // The peer as the server sees it; on a new connection.
  std::string Call(const std::string& host) {
    const auto channel = MakeChannel(host + ":" + std::to_string(port_->port()), {});
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::Capture reply;
    const grpc::Status status =
        v1::OperatorService::NewStub(channel)->GetCapture(&context, {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.capture_id();
  }

  PeerService service_;
  ClosedConnections closed_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerPort> port_;
};

TEST_F(ServerPortTest, ServesEveryAddressOfItsHost) {
  Start("0.0.0.0:0", 1'024);
  EXPECT_TRUE(Call("127.0.0.1").find("127.0.0.1:") != std::string::npos);
  TearDown();
  Start("localhost:0", 1'024);
  Call("127.0.0.1");  // by its number: c-ares leaks ten bytes for each name that gRPC looks up
  TearDown();
  Start("127.0.0.1:0", 1'024);
  EXPECT_TRUE(Call("127.0.0.1").starts_with("ipv4:127.0.0.1:"));
}

TEST_F(ServerPortTest, ClosesConnectionsThatExhaustDescriptors) {
  const int first = AnyDescriptor().get();
  Start("127.0.0.1:0", first + 40);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 60; ++i) {
    strangers.push_back(NewSocket());
    Connect(strangers.back(), port_->port());
  }
  // The sixty sockets here are more than forty numbers already: some, and the last one surely.
  char byte = 0;
  EXPECT_EQ(recv(strangers.back().get(), &byte, 1, 0), 0);
  EXPECT_GT(closed_.refused, 0);
  strangers.clear();
  Call("127.0.0.1");
}

TEST_F(ServerPortTest, OneAddressCannotTakeAllConnections) {
  constexpr int kNumbers = 120;
  const int first = AnyDescriptor().get();
  Start("127.0.0.1:0", first + kNumbers);
  // The strangers' own ends are out of the way.
  std::vector<UniqueFd> strangers;
  const auto connect = [&](uint32_t from) {
    UniqueFd low = NewSocket();
    UniqueFd socket(fcntl(low.get(), F_DUPFD_CLOEXEC, first + 2 * kNumbers));
    low.Close();
    Connect(socket, port_->port(), from);
    return socket;
  };
  const auto is_refused = [&](const UniqueFd& socket) {
    char byte = 0;
    return recv(socket.get(), &byte, 1, 0) == 0;  // and not gRPC's first words
  };
  while (strangers.size() < 2 * kNumbers && closed_.crowded == 0) {
    strangers.push_back(connect(2));
    if (is_refused(strangers.back())) break;
  }
  EXPECT_GT(closed_.crowded, 0);
  EXPECT_GT(strangers.size(), kNumbers / 2);
  EXPECT_EQ(closed_.refused, 0) << "numbers are left";
  EXPECT_FALSE(is_refused(connect(3))) << "others are let in";
  Call("127.0.0.1");
  // Who has closed them may come again, a second later at most.
  strangers.clear();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool is_in = false;
  while (!is_in && std::chrono::steady_clock::now() < deadline) is_in = !is_refused(connect(2));
  EXPECT_TRUE(is_in);
}

TEST_F(ServerPortTest, ResumesWhenDescriptorsAreFree) {
  Start("127.0.0.1:0", 1 << 20);
  UniqueFd waiting = NewSocket();
  const FileLimit limit;
  ASSERT_EQ(limit.Set(static_cast<rlim_t>(AnyDescriptor().get() + 8)), 0);
  std::vector<UniqueFd> taken;
  do {
    taken.push_back(AnyDescriptor());
  } while (taken.back().valid());
  ASSERT_EQ(errno, EMFILE);
  Connect(waiting, port_->port());  // by the kernel; nobody can take it
  pollfd spoken = {.fd = waiting.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&spoken, 1, 300), 0);
  taken.clear();
  ASSERT_EQ(limit.Restore(), 0);
  // gRPC's first words of HTTP/2.
  EXPECT_EQ(poll(&spoken, 1, 60'000), 1);
  char byte = 0;
  EXPECT_EQ(recv(waiting.get(), &byte, 1, 0), 1);
  Call("127.0.0.1");
}

TEST_F(ServerPortTest, ReportsUnavailableAddress) {
  Start("127.0.0.1:0", 1'024);
  const std::string taken = "127.0.0.1:" + std::to_string(port_->port());
  EXPECT_EQ(ServerPort::Listen({.address = taken}).status().message(),
            "cannot listen on " + taken + ": Address already in use");
  EXPECT_EQ(ServerPort::Listen({.address = "192.0.2.1:0"}).status().message(),
            "cannot listen on 192.0.2.1:0: it is not an address of this machine");
  EXPECT_EQ(ServerPort::Listen({.address = "nowhere.invalid:0"})
                .status()
                .message()
                .find("cannot listen on nowhere.invalid:0: "),
            0);
}

}  // namespace
}  // namespace neurontrace
