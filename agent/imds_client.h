// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

// Returns the body of a complete HTTP/1.x answer of the metadata service: 1 to 255 printable ASCII
// characters without spaces. Fails with FAILED_PRECONDITION for a status other than 200 and for
// anything else, such as the page of a captive proxy. Pure; has a fuzzer.
absl::StatusOr<std::string> ImdsText(std::string_view answer);

// Client of EC2's instance metadata service, version 2 (IMDSv2): a PUT gets a session token, which
// each GET presents. Each request blocks for at most about `timeout_ms`, so this is used only at
// the start, before the agent's sequence runs. One thread.
class ImdsClient {
 public:
  struct Options {
    // The link-local address that AWS documents for IPv4.
    std::string host = "169.254.169.254";  // an IPv4 address
    uint16_t port = 80;
    int timeout_ms = 300;
  };

  explicit ImdsClient(Options options) : options_(std::move(options)) {}

  // Returns the text at /latest/meta-data/`name`. Fails with UNAVAILABLE if no answer comes in
  // time, as outside EC2, and with the errors of ImdsText. The token is fetched once and kept.
  absl::StatusOr<std::string> Get(const std::string& name);

 private:
  // Sends one request on a connection of its own and returns the text of its answer.
  absl::StatusOr<std::string> Request(const std::string& request);

  const Options options_;
  std::string token_;
};

}  // namespace neurontrace
