// SPDX-License-Identifier: Apache-2.0
// Goal: whatever somebody does with their connections, others have their answers, and each
// connection ends in its time. A real server on loopback, asked by plain sockets.
#include "lib/health/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "lib/health/http_test_support.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kBodyBytesMax = 4'096;

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server =
        HttpServer::Start({.address = "127.0.0.1:0",
                           .body_bytes_max =
                               [](const HttpServerRequest& request) {
                                 return request.method == "POST" ? kBodyBytesMax : 0;
                               },
                           .answer = [this](const HttpServerRequest& request) -> HttpAnswer {
                             ++answered_;
                             if (request.path == "/large") {
                               return {.body = std::string(64 << 20, 'x')};
                             }
                             return {.body = request.path + " " + request.body};
                           },
                           .crowded_out = [this] { ++crowded_out_; }});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }

  // Sends a byte now and then, each in time, until the other side has closed; how many went.
  static int SendSlowly(int fd, int bytes_max) {
    pollfd closed = {.fd = fd, .events = POLLRDHUP, .revents = 0};
    int lines_sent = 0;
    while (lines_sent < bytes_max && poll(&closed, 1, 100) == 0 &&
           send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
      ++lines_sent;
    }
    return lines_sent;
  }

  std::atomic<int> answered_ = 0;
  std::atomic<size_t> crowded_out_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOnceAndCloses) {
  EXPECT_THAT(Get(port(), "/a?b=c"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Get(port(), "/a?b=c"), EndsWith("Content-Length: 3\r\n\r\n/a "));
  EXPECT_THAT(Post(port(), "/a", "why"), EndsWith("\r\n\r\n/a why"));
  const std::string head = Ask(port(), "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(head, EndsWith("Content-Length: 3\r\n\r\n"));
}

TEST_F(HttpServerTest, RejectsInvalidOrOversizedRequests) {
  EXPECT_THAT(Ask(port(), "what\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get(port(), "/" + std::string(limits::kHealthHeadBytesMax, 'x')),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Post(port(), "/", std::string(kBodyBytesMax + 1, 'x')), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask(port(), "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"),
              StartsWith("HTTP/1.1 411"));
  EXPECT_EQ(answered_, 0);
}

TEST_F(HttpServerTest, AnswersDuringUnfinishedRequest) {
  std::vector<int> half;
  for (int i = 0; i < 30; ++i) half.push_back(Send(port(), "GET /metr"));
  for (int i = 0; i < 30; ++i) {
    half.push_back(Send(port(), "POST / HTTP/1.0\r\nContent-Length: 8\r\n\r\nwhy"));
  }
  EXPECT_THAT(Get(port(), "/a"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Rest(half.front()), "");
  EXPECT_THAT(Rest(half.back()), StartsWith("HTTP/1.1 408"));
  EXPECT_EQ(answered_, 1);
  for (const int fd : half) close(fd);
}

TEST_F(HttpServerTest, ClosesTheOldestWhereThereAreTooMany) {
  std::vector<int> half;
  for (size_t i = 0; i < 2 * limits::kHealthConnectionsMax; ++i) {
    half.push_back(Send(port(), "GET /metr"));
    // Those before it have been closed, and not it.
    if (i % 64 == 0) {
      EXPECT_THAT(Get(port(), "/a"), StartsWith("HTTP/1.1 200"));
    }
  }
  EXPECT_THAT(Rest(half.front()), "");
  EXPECT_GE(crowded_out_, 1u);  // others may still be in the backlog
  for (const int fd : half) close(fd);
}

// Byte after byte, each in time, and the whole of it not.
TEST_F(HttpServerTest, HeadAndBodyHaveOneTimeEach) {
  const int head = Send(port(), "GET /");
  EXPECT_LT(SendSlowly(head, 300), 300);
  close(head);
  const int body = Send(port(), "POST / HTTP/1.0\r\nContent-Length: 4096\r\n\r\n");
  EXPECT_LT(SendSlowly(body, 300), 300);
  EXPECT_THAT(Rest(body), StartsWith("HTTP/1.1 408"));
  close(body);
  EXPECT_EQ(answered_, 0);
}

TEST_F(HttpServerTest, DoesNotWaitForDataAfterReply) {
  for (const char* request : {"GET / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n",
                              "POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n"}) {
    const int fd = Send(port(), request);
    // The answer's end is there at once, and the connection's a moment later: then nothing can be
    // sent any more.
    pollfd answered = {.fd = fd, .events = POLLRDHUP, .revents = 0};
    ASSERT_EQ(poll(&answered, 1, 60'000), 1);
    int lines_sent = 0;
    while (lines_sent < 300 && send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
      ++lines_sent;
      poll(nullptr, 0, 100);
    }
    EXPECT_LT(lines_sent, 300) << request;
    close(fd);
  }
}

// So fast that there is always something to read.
TEST_F(HttpServerTest, AFloodBehindTheAnswerEnds) {
  const int fd = Send(port(), "GET / HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n");
  const std::string much(64 << 10, 'x');
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [begin] { return std::chrono::steady_clock::now() - begin; };
  constexpr auto kElapsedMax = std::chrono::milliseconds(10 * limits::kHealthLingerMsMax);
  while (send(fd, much.data(), much.size(), MSG_NOSIGNAL) > 0 && elapsed() < kElapsedMax) {
  }
  EXPECT_LT(elapsed(), kElapsedMax);
  close(fd);
}

TEST_F(HttpServerTest, NonReadingClientBlocksNobody) {
  std::vector<int> unread;
  for (int i = 0; i < 2 * limits::kHealthThreads; ++i) {
    unread.push_back(Send(port(), "GET /large HTTP/1.1\r\n\r\n"));
  }
  EXPECT_THAT(Get(port(), "/a"), StartsWith("HTTP/1.1 200"));
  for (const int fd : unread) close(fd);
}

TEST_F(HttpServerTest, ClosesActiveConnectionsOnShutdown) {
  const int half = Send(port(), "GET /metr");
  EXPECT_THAT(Get(port(), "/a"), StartsWith("HTTP/1.1 200"));
  server_.reset();
  EXPECT_THAT(Rest(half), "");
  close(half);
}

}  // namespace
}  // namespace neurontrace
