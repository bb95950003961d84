// SPDX-License-Identifier: Apache-2.0
// Goal: browsers get whole answers over connections that stay open, and neither malformed nor slow
// clients do harm. Method: a real server, and sockets of this machine.
#include "lib/web/web_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
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

// Has a further piece for ever. Tells the test when the server gives it up.
class Endless final : public WebStream {
 public:
  explicit Endless(std::promise<void>& given_up) : given_up_(given_up) {}
  ~Endless() override { given_up_.set_value(); }
  Next Read(std::string& piece) override {
    piece.assign(64u << 10, 'x');
    return Next::kMore;
  }

 private:
  std::promise<void>& given_up_;
};

class EchoHandler final : public WebHandler {
 public:
  std::promise<void> given_up;

  WebReply Handle(const WebRequest& request) override {
    WebReply reply;
    if (request.path == "/endless") {
      reply.stream = std::make_unique<Endless>(given_up);
      return reply;
    }
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
  WebServerTest() { Start({}); }

  void Start(const WebSessionLimits& session) {
    server_.reset();
    auto server = WebServer::Start({.address = "127.0.0.1:0", .session = session}, handler_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    // So that a server that does not close fails a test instead of stopping it.
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
    return fd;
  }
  static void Send(int fd, const std::string& text) {
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Reads until the server closes. An error, such as a reset, is in the text.
  static std::string ReadAll(int fd) {
    std::string text;
    char buffer[4'096];
    while (true) {
      const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
      if (size < 0) text += std::string(" [") + std::strerror(errno) + "]";
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

// -- time limits, which are short here

constexpr int kShortMs = 50;
constexpr int kLongMs = 60'000;

TEST_F(WebServerTest, ClosesAConnectionThatAsksNothing) {
  Start({.idle_ms = kLongMs, .request_ms = kShortMs});
  EXPECT_EQ(ReadAll(Connect()), "");
}

TEST_F(WebServerTest, ClosesAConnectionWhoseHeadDoesNotEnd) {
  Start({.idle_ms = kLongMs, .request_ms = kShortMs});
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: a\r\n"), "");
}

TEST_F(WebServerTest, ClosesAConnectionThatIsIdleBetweenRequests) {
  Start({.idle_ms = kShortMs, .request_ms = kLongMs});
  const std::string answer = Ask("GET /a HTTP/1.1\r\nHost: one\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, EndsWith("GET /a ? one ")) << "and not a word about the end";
}

TEST_F(WebServerTest, AnswersABodyThatDoesNotEnd) {
  Start({.idle_ms = kLongMs, .request_ms = kShortMs});
  const std::string answer = Ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nb");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, EndsWith("the body did not arrive in time\n"));
  EXPECT_EQ(server_->counters().malformed_requests, 1u);
}

TEST_F(WebServerTest, GivesUpAnAnswerThatNobodyReads) {
  Start({.unread_ms = kShortMs});
  const int fd = Connect();
  Send(fd, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(handler_.given_up.get_future().wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
  close(fd);
}

// -- the other limits of a connection

TEST_F(WebServerTest, ClosesAConnectionAfterItsShareOfRequests) {
  Start({.requests = 2});
  const std::string request = "GET /a HTTP/1.1\r\nHost: one\r\n\r\n";
  const std::string answers = Ask(request + request + request);
  size_t count = 0;
  for (size_t at = answers.find("200 OK"); at != std::string::npos;
       at = answers.find("200 OK", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 2u);
  EXPECT_THAT(answers, HasSubstr("Connection: close"));
}

// Whoever is refused while still sending sees the answer, and no reset.
TEST_F(WebServerTest, RefusesALongBodyInFull) {
  const size_t bytes = 2 * limits::kWebBodyBytesMax;
  const std::string answer =
      Ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
          std::string(bytes, 'x'));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, EndsWith("the request's body is too long\n"));
}

TEST_F(WebServerTest, RefusesALongBodyInChunks) {
  std::string body;
  for (size_t i = 0; i < 20; ++i) body += "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  const std::string answer =
      Ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "0\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, EndsWith("the request's body is too long\n"));
}

TEST_F(WebServerTest, ReadsABodyUpToTheLimit) {
  const std::string answer =
      Ask("POST /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " +
          std::to_string(limits::kWebBodyBytesMax) + "\r\n\r\n" +
          std::string(limits::kWebBodyBytesMax, 'x'));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, EndsWith("xxxx"));
}

TEST_F(WebServerTest, RefusesALongHeadInFull) {
  const std::string answer =
      Ask("GET / HTTP/1.1\r\nX: " + std::string(16 * limits::kWebHeadBytesMax, 'x') + "\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(answer, EndsWith("the request's head is too long\n"));
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
