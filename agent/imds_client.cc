// SPDX-License-Identifier: Apache-2.0
#include "agent/imds_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "lib/base/status.h"

// How it works: HTTP/1.0 over a plain socket, on which nothing waits longer than the request's
// deadline.
namespace neurontrace {
namespace {

// Limits of an answer and of its text. Outside EC2 any server may answer.
constexpr size_t kAnswerBytesMax = 16u << 10;
constexpr size_t kTextBytesMax = 255;

using TimePoint = std::chrono::steady_clock::time_point;

// Closes on every return; the functions below have many.
class Socket {
 public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// All waits of one request share one deadline, so that a server that sends a byte at a time cannot
// hold up the start.
absl::Status WaitFor(int fd, short events, TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  pollfd poll_fd{fd, events, 0};
  if (left.count() <= 0 || poll(&poll_fd, 1, static_cast<int>(left.count())) <= 0) {
    return Unavailable("the request timed out");
  }
  return absl::OkStatus();
}

// Connects without blocking longer than the deadline. Fails with UNAVAILABLE, or with
// INVALID_ARGUMENT if `host` is not an address.
absl::Status Connect(int fd, const std::string& host, uint16_t port, TimePoint deadline) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return InvalidArgument("'{}' is not an IPv4 address", host);
  }
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS) return Unavailable("cannot connect: {}", strerror(errno));
  RETURN_IF_ERROR(WaitFor(fd, POLLOUT, deadline));
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return Unavailable("cannot connect: {}", strerror(error));
  return absl::OkStatus();
}

// Returns all bytes until the server closes the connection, as HTTP/1.0 delimits an answer. Fails
// with UNAVAILABLE, and with FAILED_PRECONDITION beyond kAnswerBytesMax.
absl::StatusOr<std::string> ReadToEnd(int fd, TimePoint deadline) {
  std::string answer;
  char part[4096];
  for (;;) {
    RETURN_IF_ERROR(WaitFor(fd, POLLIN, deadline));
    const ssize_t n = recv(fd, part, sizeof(part), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return Unavailable("cannot read: {}", strerror(errno));
    if (n == 0) return answer;
    answer.append(part, static_cast<size_t>(n));
    if (answer.size() > kAnswerBytesMax) return FailedPrecondition("the answer is too long");
  }
}

}  // namespace

absl::StatusOr<std::string> ImdsText(std::string_view answer) {
  const size_t line_end = answer.find("\r\n");
  const size_t body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || body == std::string_view::npos) {
    return FailedPrecondition("the answer is not valid HTTP");
  }
  const std::string_view status = answer.substr(0, line_end);
  if (status.size() < 12 || status.substr(9, 3) != "200") {
    return FailedPrecondition("the service answered '{}'", status.substr(0, 64));
  }
  std::string_view text = answer.substr(body + 4);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (text.empty() || text.size() > kTextBytesMax) {
    return FailedPrecondition("the answer has an invalid size of {} bytes", text.size());
  }
  // The result becomes part of file names and metric labels.
  for (const char c : text) {
    if (c <= ' ' || c > '~') return FailedPrecondition("the answer is not plain text");
  }
  return std::string(text);
}

absl::StatusOr<std::string> ImdsClient::Get(const std::string& name) {
  // IMDSv2 answers only requests that present a session token.
  if (token_.empty()) {
    ASSIGN_OR_RETURN(token_,
                     // HTTP/1.0 has neither chunks nor keep-alive: the answer ends where the
                     // connection does.
                     Request("PUT /latest/api/token HTTP/1.0\r\n"
                             "X-aws-ec2-metadata-token-ttl-seconds: 60\r\nContent-Length: 0"));
  }
  return Request(fmt::format("GET /latest/meta-data/{} HTTP/1.0\r\nX-aws-ec2-metadata-token: {}",
                             name, token_));
}

absl::StatusOr<std::string> ImdsClient::Request(const std::string& request) {
  const TimePoint deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.timeout_ms);
  const Socket socket;
  if (socket.fd() < 0) return Unavailable("cannot create a socket: {}", strerror(errno));
  RETURN_IF_ERROR(Connect(socket.fd(), options_.host, options_.port, deadline));
  const std::string text =
      fmt::format("{}\r\nHost: {}\r\nConnection: close\r\n\r\n", request, options_.host);
  // A new connection's buffer takes a request of this size at once.
  if (send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(text.size())) {
    return Unavailable("cannot send: {}", strerror(errno));
  }
  ASSIGN_OR_RETURN(const std::string answer, ReadToEnd(socket.fd(), deadline));
  return ImdsText(answer);
}

}  // namespace neurontrace
