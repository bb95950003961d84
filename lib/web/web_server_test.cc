// SPDX-License-Identifier: Apache-2.0
// Goal: browsers get whole answers over connections that stay open, and neither malformed nor slow
// clients do harm. Method: a real server, and sockets of this machine.
#include "lib/web/web_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>

#include "lib/trace/web_limits.h"

namespace neurontrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Streams the texts that it got.
class Texts final : public WebStream {
 public:
  explicit Texts(std::vector<std::string> texts, bool fails)
      : texts_(std::move(texts)), fails_(fails) {}
  Next Read(std::string& piece) override {
    if (at_ == texts_.size()) return fails_ ? Next::kFailed : Next::kEnd;
    piece = texts_[at_++];
    return Next::kMore;
  }

 private:
  const std::vector<std::string> texts_;
  const bool fails_;
  size_t at_ = 0;
};

class EchoHandler final : public WebHandler {
 public:
  WebReply Handle(const WebRequest& request) override {
    WebReply reply;
    if (request.path == "/large") {
      reply.body.assign(100'000, 'x');
    } else if (request.path == "/stream" || request.path == "/broken") {
      reply.body = "first,";
      reply.stream = std::make_unique<Texts>(std::vector<std::string>{"second,", "", "third"},
                                             request.path == "/broken");
    } else {
      reply.body = request.method + " " + request.path + " ?" + request.query + " " + request.host +
                   " " + request.body;
    }
    return reply;
  }
};

class WebServerTest : public ::testing::Test {
 protected:
  WebServerTest() {
    auto server = WebServer::Start("127.0.0.1:0", handler_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static void Send(int fd, const std::string& text) {
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Reads until the server closes.
  static std::string ReadAll(int fd) {
    std::string text;
    char buffer[4'096];
    while (true) {
      const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    close(fd);
    return text;
  }
  std::string Ask(const std::string& request) const {
    const int fd = Connect();
    Send(fd, request);
    return ReadAll(fd);
  }

  EchoHandler handler_;
  std::unique_ptr<WebServer> server_;
};

TEST_F(WebServerTest, AnswersSeveralRequestsOnOneConnection) {
  const std::string answers =
      Ask("GET /a?x=1 HTTP/1.1\r\nHost: one\r\n\r\n"
          "POST /b HTTP/1.1\r\nHost: two\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answers, HasSubstr("GET /a ?x=1 one "));
  EXPECT_THAT(answers, EndsWith("POST /b ? two body"));
}

TEST_F(WebServerTest, JoinsRepeatedHostHeaders) {
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"),
              HasSubstr("a,b"));
}

TEST_F(WebServerTest, HeadHasTheLengthButNoBody) {
  const std::string answer = Ask("HEAD /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100000"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(WebServerTest, CompressesForClientsThatAcceptIt) {
  const std::string answer = Ask(
      "GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, br\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Encoding: gzip"));
  EXPECT_LT(answer.size(), 2'000u);
}

TEST_F(WebServerTest, StreamsPiecesAsChunks) {
  const std::string answer = Ask("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(answer, EndsWith("\r\n6\r\nfirst,\r\n7\r\nsecond,\r\n5\r\nthird\r\n0\r\n\r\n"));
}

TEST_F(WebServerTest, FailedStreamHasNoLastChunk) {
  const std::string answer = Ask("GET /broken HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, EndsWith("5\r\nthird\r\n"));
}

TEST_F(WebServerTest, RefusesWhatIsNoRequestOrTooLong) {
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nX: " + std::string(limits::kWebHeadBytesMax, 'x')),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(WebServerTest, EndsWithOpenConnections) {
  const int fd = Connect();
  Send(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  server_.reset();
  close(fd);
}

TEST(WebServerStartTest, ErrorsNameTheAddress) {
  EchoHandler handler;
  EXPECT_THAT(WebServer::Start("nowhere", handler).status().message(), HasSubstr("127.0.0.1:9403"));
}

}  // namespace
}  // namespace neurontrace
