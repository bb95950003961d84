// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/web_limits.h"
#include "lib/web/web_tls.h"

namespace neurontrace {

// A request of a browser. Everything in it is the client's and may contain anything.
struct WebRequest {
  std::string method;  // "GET"
  std::string path;    // up to the "?", not decoded
  std::string query;   // behind the "?", not decoded
  std::string host;    // several Host headers are joined by commas
  std::string cookie;
  std::string accept_encoding;
  std::string content_type;
  std::string fetch_site;  // Sec-Fetch-Site, which browsers set and pages cannot change
  std::string authorization;
  std::string body;
  // Not the client's: they come from the connection.
  std::string peer;         // as gRPC writes it: "ipv4:10.0.0.9:4711"
  std::string certificate;  // the client's, in PEM, verified in the handshake; empty: it has none
};

// The rest of an answer that is made piece by piece. Used by one thread at a time.
class WebStream {
 public:
  enum class Next : uint8_t {
    kMore,    // `piece` has more
    kEnd,     // the answer is complete
    kFailed,  // the connection is closed, so that the client sees that the answer is not complete
  };
  // Ends whatever makes the pieces.
  virtual ~WebStream() = default;
  // Replaces `piece`. May block. An empty piece is not sent.
  virtual Next Read(std::string& piece) = 0;
};

// An answer. The server adds the length or the chunked encoding, and closes what it must.
struct WebReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // If set, its pieces follow `body`.
  std::unique_ptr<WebStream> stream;
};

// Makes the answers of a WebServer.
class WebHandler {
 public:
  virtual ~WebHandler() = default;
  // Called on any of the server's threads, several at once; may block.
  virtual WebReply Handle(const WebRequest& request) = 0;
};

// What a server has done since its start. Any thread.
struct WebCounters {
  std::atomic<uint64_t> connections = 0;          // accepted ones
  std::atomic<uint64_t> refused_connections = 0;  // closed at once: too many, or of one address
  std::atomic<uint64_t> failed_handshakes = 0;    // of TLS
  std::atomic<uint64_t> requests = 0;             // answered by the handler
  std::atomic<uint64_t> malformed_requests = 0;   // refused without the handler
  std::atomic<uint64_t> received_bytes = 0;       // heads and bodies of requests
  std::atomic<uint64_t> sent_bytes = 0;           // heads and bodies of answers
  std::atomic<uint64_t> answer_ns = 0;            // time in which answers were made
  std::atomic<size_t> open = 0;                   // connections now
};

// What one connection may take. Tests set less.
struct WebSessionLimits {
  int idle_ms = limits::kWebIdleMsMax;
  int request_ms = limits::kWebRequestMsMax;
  int unread_ms = limits::kWebUnreadMsMax;
  int requests = limits::kWebRequestsOfConnectionMax;
};

// HTTP/1.1 with keep-alive for browsers, in plain text or over TLS. The protocol is Boost.Beast's;
// web_session.h has the states of a connection. Reading and writing hold no thread, and each step
// has a time limit (lib/trace/web_limits.h), so that slow clients keep nobody from an answer.
//
// thread: web io: reads requests of browsers and writes answers
// thread: web: makes the answers; 24, or 48 in the aggregator
class WebServer {
 public:
  struct Options {
    std::string address;                // HOST:PORT; port 0 picks a free one
    std::shared_ptr<const WebTls> tls;  // null: plain text
    // Of all connections, one address may hold at most three times as many as are free.
    size_t connections_max = limits::kWebConnectionsMax;
    int threads = limits::kWebThreads;  // that make answers
    WebSessionLimits session;
  };
  // Starts serving. `handler` must outlive the server. Fails with UNAVAILABLE, with the system's
  // reason, if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const Options& options,
                                                          WebHandler& handler);
  // Starts serving at HOST:PORT in plain text, with the default limits.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const std::string& address,
                                                          WebHandler& handler);
  // Waits for answers that are being made, and closes all connections.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  // Returns the port that it listens on. Any thread.
  int port() const;
  // Uses other certificates for later connections. Requires a server with TLS. Any thread.
  void UseTls(std::shared_ptr<const WebTls> tls);
  // Any thread.
  const WebCounters& counters() const;

 private:
  // Hides Boost.Asio from everything that includes this header.
  class Impl;
  explicit WebServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
