// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// A request as its handlers see it. Its texts are the client's and may contain anything.
struct HttpServerRequest {
  // "GET", in the client's case.
  std::string method;
  std::string path;  // without the part from "?" on; not decoded
  std::string host;  // the Host header; several are joined by commas
  // Empty unless `body_bytes_max` allowed it.
  std::string body;
  bool is_local = false;        // from this machine
  bool is_of_web_page = false;  // has an Origin header: a browser sends it for a web page
};

// The answer to a request. The server adds the length, "no-store" and "Connection: close".
struct HttpAnswer {
  // The status code, which the server sends with its usual reason.
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::string content_security_policy;  // empty: no such header
  uint64_t retry_after_seconds = 0;     // 0: no such header
};

// HTTP/1.1 for a few short requests, on threads of its own as long as it lives: one answer for each
// connection. Used by HealthServer only. The protocol is Boost.Beast's; http_session.h has the
// states of a connection.
//
// Connections that are being read or written hold no thread, and each step has a time limit for all
// of its bytes (lib/trace/daemon_limits.h). So a client that sends slowly or never ends keeps no
// other one from an answer. If there are too many connections, the one that has waited for its
// request the longest is closed.
//
// thread: health: answer /metrics, /healthz, /readyz and /statusz; eight
class HttpServer {
 public:
  // What the server calls. The functions must be callable until the destructor returns.
  struct Options {
    std::string address;  // HOST:PORT; port 0 picks a free one
    // Returns how many bytes the body of a request with this head may have; 0: it is not read.
    // Called on any thread.
    std::function<size_t(const HttpServerRequest&)> body_bytes_max;
    // Returns the answer. Called on one of limits::kHealthThreads threads, which it may block.
    std::function<HttpAnswer(const HttpServerRequest&)> answer;
    // Called on any thread when a connection was closed because there were too many.
    std::function<void()> crowded_out;
  };
  // Starts serving. Fails with UNAVAILABLE, with the system's reason, if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Waits for answers that are being made, and closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port that it listens on. Any thread.
  int port() const;

 private:
  // Hides Boost.Asio from everything that includes this header.
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
