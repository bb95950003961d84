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

// AWS Signature Version 4, as S3 asks for it.
struct HttpSigning {
  std::string region;
  std::string service;
  std::string key_id;
  std::string secret;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // http:// or https://
  std::vector<std::string> headers;  // "name: value"
  std::string_view body;             // with any method but GET and HEAD
  std::optional<HttpSigning> signing;
  std::string authorities;  // PEM file of who may vouch for the server; empty: MachineAuthorities()
  bool through_proxy = true;  // where the environment names one
  std::chrono::milliseconds connect_time = std::chrono::seconds(10);
  std::chrono::milliseconds time = std::chrono::seconds(60);  // of all of it
  size_t reply_bytes_max = 1u << 20;
};

struct HttpReply {
  int status = 0;
  std::string body;
  uint64_t content_bytes = 0;  // as the server says, also where HEAD brings no body
  // The value of a header, without blanks around it; empty where it did not come.
  std::string_view Header(std::string_view name) const;

  std::vector<std::string> header_lines;  // as they came
};

// Requests over HTTP, with TLS where the URL says so, by libcurl; redirections are not followed. A
// connection is kept for the next request to the same server. One thread at a time; blocks.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();

  // Any reply of the server. UNAVAILABLE where none came, FAILED_PRECONDITION where nobody vouches
  // for the server's certificate, or the file of authorities has none, OUT_OF_RANGE for a reply
  // that is too large. Errors name the server's address, and nothing else of the request.
  absl::StatusOr<HttpReply> Send(const HttpRequest& request);

 private:
  struct Handle;
  const std::unique_ptr<Handle> handle_;
};

// RFC 3986: all but letters, digits and -._~ (and, where it is wanted, slashes) as %XX.
std::string UrlEscaped(std::string_view text, bool keep_slashes = false);

// The PEM file in which this machine's distribution keeps the authorities that it trusts: the first
// that is there of those of Debian and Ubuntu, Amazon Linux and Fedora, SUSE, Alpine; empty: none
// is. libcurl itself knows only the place of the distribution that it was built for.
std::string MachineAuthorities(const std::string& root = "");

}  // namespace neurontrace
