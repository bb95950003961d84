// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace {

// Parameters of AWS Signature Version 4, which S3 and STS require. libcurl computes the signature
// (CURLOPT_AWS_SIGV4); a session token is a header of the request.
struct HttpSigning {
  std::string region;
  // As it is in the signature's scope, such as "s3".
  std::string service;
  std::string key_id;
  std::string secret;
};

// One request. A plain value that borrows its body: the bytes must outlive the call of
// HttpClient::Send.
struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // http:// or https://
  std::vector<std::string> headers;  // "name: value"
  std::string_view body;             // with any method but GET and HEAD
  std::optional<HttpSigning> signing;
  // PEM file of the certificate authorities that are trusted for this server. They replace the
  // machine's own; if it is empty, MachineAuthorities() is used.
  std::string authorities;
  // Whether the proxy that the environment names (HTTPS_PROXY and NO_PROXY, as libcurl reads them)
  // is used. False for servers that only this machine can reach.
  bool through_proxy = true;
  // Limit of name resolution, connecting and the TLS handshake together.
  std::chrono::milliseconds connect_time = std::chrono::seconds(10);
  // Limit of the whole exchange, connecting included. A transfer that stalls for 20 s fails
  // earlier.
  std::chrono::milliseconds time = std::chrono::seconds(60);
  // A longer body is refused with OUT_OF_RANGE; nothing of it is returned.
  size_t reply_bytes_max = 1u << 20;
};

// The server's reply, whatever its status. A plain value.
struct HttpReply {
  int status = 0;
  std::string body;
  // The Content-Length that the server sent, also in the reply to HEAD, which has no body. 0 if
  // there was none.
  uint64_t content_bytes = 0;
  // Returns the value of the first header of this name (in any case), without blanks around it, or
  // an empty text if there is none. The result points into header_lines.
  std::string_view Header(std::string_view name) const;

  // As they were received, with their line ends. Lines beyond limits::kHttpHeaderLinesMax are
  // dropped.
  std::vector<std::string> header_lines;
};

// Sends requests over HTTP or, for https:// URLs, over TLS by libcurl. It follows no redirection
// and never retries: callers decide what a status means. The connection is kept for the next
// request to the same server. Used by one thread at a time; calls block.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();

  // Returns any reply of the server, errors such as 404 and 503 included. Fails with UNAVAILABLE if
  // no reply was received in time, with FAILED_PRECONDITION if no trusted authority vouches for the
  // server's certificate or the authorities' file has none, with OUT_OF_RANGE if the reply is too
  // large, and with INTERNAL if libcurl cannot be initialised. Messages name the scheme, host and
  // port alone, because paths, queries and headers may hold secrets.
  absl::StatusOr<HttpReply> Send(const HttpRequest& request);

 private:
  struct Handle;
  const std::unique_ptr<Handle> handle_;
};

// Returns the text with every byte except the unreserved characters of RFC 3986 (letters, digits
// and -._~), and slashes if `keep_slashes`, written as %XX. Signature Version 4 demands exactly
// this set and upper-case digits.
std::string UrlEscaped(std::string_view text, bool keep_slashes = false);

// Returns the PEM file in which this machine's distribution keeps the authorities that it trusts:
// the first existing one of the places of Debian and Ubuntu, of Amazon Linux and Fedora, of SUSE,
// and of Alpine. Returns an empty path if there is none. libcurl itself knows only the place of the
// distribution that it was built for. `root` precedes the paths, for tests.
std::string MachineAuthorities(const std::string& root = "");

}  // namespace neurontrace
