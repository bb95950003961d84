// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

struct HttpServerRequest {
  std::string method;
  std::string path;  // without what follows a "?"
  std::string host;  // the Host header; of several, all with commas between
  std::string body;
  bool is_local = false;        // of this machine
  bool is_of_web_page = false;  // a browser says for whose page it asks
};

struct HttpAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::string content_security_policy;  // empty: nothing is said of it
  uint64_t retry_after_seconds = 0;     // 0: the same
};

// HTTP/1.1 for a handful of short questions, on threads of its own as long as it lives: one answer
// a connection. Connections that are being read or written hold no thread, and each step has one
// time for all of it, however its bytes come (lib/trace/daemon_limits.h): who sends slowly, or
// never ends, keeps nobody else from an answer. Where there are too many connections, the one that
// has been waiting for its request the longest is closed. The protocol is Boost.Beast's.
//
// thread: health: answer /metrics, /healthz, /readyz and /statusz; eight
class HttpServer {
 public:
  struct Options {
    std::string address;  // HOST:PORT; port 0 picks a free one
    // The bytes that the body of a request of this head may have; 0: it is not read. Any thread.
    std::function<size_t(const HttpServerRequest&)> body_bytes_max;
    // On one of limits::kHealthThreads threads, which it may hold.
    std::function<HttpAnswer(const HttpServerRequest&)> answer;
    // A connection was closed because there were too many. Any thread.
    std::function<void()> crowded_out;
  };
  // UNAVAILABLE, with the system's words, when it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Answers that are being made are waited for; all connections are closed.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
