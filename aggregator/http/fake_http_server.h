// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {

// An HTTP server on the loopback interface for tests. It answers with what a handler returns and
// keeps all requests, one for each connection.
class FakeHttpServer {
 public:
  // A request as it was received.
  struct Request {
    std::string method;
    // The path with its query.
    std::string target;
    // All lines before the body.
    std::string head;
    std::string body;
  };
  struct Answer {
    std::string status = "200 OK";
    std::string body;
    // Further header lines, each with \r\n at its end.
    std::string headers;
  };
  using Handler = std::function<Answer(const Request&)>;

  // Listens on a free port at once. Aborts if that fails: a test cannot continue.
  explicit FakeHttpServer(Handler handler)
      : handler_(std::move(handler)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_.get(), at, size) != 0 || listen(listener_.get(), 8) != 0 ||
        getsockname(listener_.get(), at, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  // Closing the listener makes accept fail, which ends the thread.
  ~FakeHttpServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<Request> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  // Handles one connection at a time. "Connection: close" makes the client connect again for each
  // request, so that none waits behind an idle connection.
  void Serve() {
    while (true) {
      const UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
      if (!peer.valid()) return;
      const Request request = Read(peer.get());
      {
        const MutexLock lock(mutex_);
        requests_.push_back(request);
      }
      const Answer answer = handler_(request);
      const std::string text = "HTTP/1.1 " + answer.status + "\r\n" + answer.headers +
                               "Content-Length: " + std::to_string(answer.body.size()) +
                               "\r\nConnection: close\r\n\r\n" + answer.body;
      send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
  }

  // Reads up to the end of the body that Content-Length announces, which suffices for libcurl's
  // requests.
  static Request Read(int peer) {
    Request request;
    char bytes[4096];
    size_t end = std::string::npos;
    while ((end = request.head.find("\r\n\r\n")) == std::string::npos) {
      const ssize_t got = recv(peer, bytes, sizeof(bytes), 0);
      if (got <= 0) return request;
      request.head.append(bytes, static_cast<size_t>(got));
    }
    request.body = request.head.substr(end + 4);
    request.head.resize(end + 2);
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const size_t length = request.head.find(kLength);
    const size_t bytes_wanted =
        length == std::string::npos ? 0 : std::stoul(request.head.substr(length + kLength.size()));
    while (request.body.size() < bytes_wanted) {
      const ssize_t got = recv(peer, bytes, sizeof(bytes), 0);
      if (got <= 0) return request;
      request.body.append(bytes, static_cast<size_t>(got));
    }
    const size_t blank = request.head.find(' ');
    request.method = request.head.substr(0, blank);
    request.target = request.head.substr(blank + 1, request.head.find(' ', blank + 1) - blank - 1);
    return request;
  }

  const Handler handler_;
  const UniqueFd listener_;
  uint16_t port_ = 0;
  mutable Mutex mutex_;
  std::vector<Request> requests_ NT_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace neurontrace
