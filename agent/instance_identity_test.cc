// SPDX-License-Identifier: Apache-2.0
// Who an agent says it is, with a metadata service of the test's own on a loopback port.
#include "agent/instance_identity.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers HTTP requests, one connection each, until it is destroyed.
class TinyHttpServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;  // empty: says nothing

  explicit TinyHttpServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t length = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~TinyHttpServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int fd : silent_) close(fd);
    close(listener_);
  }
  uint16_t port() const { return port_; }

 private:
  void Serve() {
    for (;;) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      char buffer[4096];
      const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
      const std::string text = answer_(std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0));
      if (text.empty()) {
        silent_.push_back(fd);
        continue;
      }
      send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      close(fd);
    }
  }

  const Answer answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<int> silent_;
  std::thread thread_;
};

std::string Ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body;
}

// As EC2's: nothing without the token.
std::string Ec2(const std::string& request) {
  if (request.starts_with("PUT /latest/api/token") &&
      request.find("X-aws-ec2-metadata-token-ttl-seconds: ") != std::string::npos) {
    return Ok("t0ken==");
  }
  if (request.find("X-aws-ec2-metadata-token: t0ken==") == std::string::npos) {
    return "HTTP/1.1 401 Unauthorized\r\n\r\n";
  }
  if (request.starts_with("GET /latest/meta-data/instance-id ")) return Ok("i-0abc\n");
  if (request.starts_with("GET /latest/meta-data/instance-type ")) return Ok("trn2.48xlarge");
  return "HTTP/1.1 404 Not Found\r\n\r\n";
}

class InstanceIdentityTest : public ::testing::Test {
 protected:
  InstanceIdentityTest() {
    std::string pattern = ::testing::TempDir() + "identity_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    places_.host_name_file = Write("host", "node-7\n");
    places_.boot_id_file = Write("boot", "b00t\n");
    places_.machine_id_file = Write("machine", "0123456789abcdef\n");
    config_.aggregator = "h:1";
  }
  ~InstanceIdentityTest() override {
    for (const char* name : {"/host", "/boot", "/machine"}) unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
    unsetenv("NEURONTRACE_INSTANCE_ID");
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  AgentInfo ResolveWith(TinyHttpServer::Answer answer) {
    const TinyHttpServer server(std::move(answer));
    places_.imds = {"127.0.0.1", server.port(), 300};
    return ResolveIdentity(config_, places_);
  }

  std::string folder_;
  IdentityPlaces places_;
  AgentConfig config_;
};

TEST_F(InstanceIdentityTest, CommandLineAndEnvironmentComeFirst) {
  config_.instance_id = "i-flag";
  AgentInfo info = ResolveWith(Ec2);
  EXPECT_EQ(info.instance_id, "i-flag");
  EXPECT_EQ(info.instance_id_source, "flag");
  EXPECT_EQ(info.host_name, "node-7");
  EXPECT_EQ(info.boot_id, "b00t");
  setenv("NEURONTRACE_INSTANCE_ID", "i-flag", 1);
  EXPECT_EQ(ResolveWith(Ec2).instance_id_source, "environment");
}

TEST_F(InstanceIdentityTest, UsesTokenForMetadataService) {
  const AgentInfo info = ResolveWith(Ec2);
  EXPECT_EQ(info.instance_id, "i-0abc");
  EXPECT_EQ(info.instance_id_source, "imds");
  EXPECT_EQ(info.instance_type, "trn2.48xlarge");
}

TEST_F(InstanceIdentityTest, FallsBackToHostName) {
  const std::vector<TinyHttpServer::Answer> answers = {
      [](const std::string&) { return std::string(); },
      [](const std::string&) { return "HTTP/1.1 403 Forbidden\r\n\r\n"; },
      [](const std::string&) { return "220 mail.example ESMTP\r\n"; },
      [](const std::string&) { return Ok(""); },
      [](const std::string&) { return Ok("<html>\n<body>"); },
      [](const std::string&) { return Ok(std::string(300, 'x')); },
      [](const std::string&) { return Ok(std::string(100'000, 'x')); },
      [](const std::string&) { return Ok("odd/name"); },
  };
  for (const auto& answer : answers) {
    const AgentInfo info = ResolveWith(answer);
    EXPECT_EQ(info.instance_id, "node-7");
    EXPECT_EQ(info.instance_id_source, "hostname");
  }
  places_.imds = {"127.0.0.1", 1, 300};  // nobody listens
  EXPECT_EQ(ResolveIdentity(config_, places_).instance_id_source, "hostname");
}

TEST_F(InstanceIdentityTest, RejectsInvalidHostNames) {
  Write("host", "no good name\n");
  places_.imds = {"127.0.0.1", 1, 300};
  EXPECT_EQ(ResolveIdentity(config_, places_).instance_id, "unnamed-host");
}

TEST_F(InstanceIdentityTest, AgentIdIsStableAndUniquePerMachineAndSocket) {
  config_.instance_id = "i-1";
  const std::string first = ResolveIdentity(config_, places_).agent_id;
  EXPECT_THAT(first, StartsWith("i-1-"));
  EXPECT_EQ(ResolveIdentity(config_, places_).agent_id, first);
  config_.socket = "/tmp/other.sock";
  EXPECT_NE(ResolveIdentity(config_, places_).agent_id, first);
  config_.socket = AgentConfig().socket;
  Write("machine", "fedcba9876543210\n");
  EXPECT_NE(ResolveIdentity(config_, places_).agent_id, first);
  config_.agent_id = "mine";
  EXPECT_EQ(ResolveIdentity(config_, places_).agent_id, "mine");
}

}  // namespace
}  // namespace neurontrace
