// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

// The body of a whole HTTP answer of the service: 1 to 255 printable characters without spaces.
// FAILED_PRECONDITION for every other answer, and for a status that is not 200.
absl::StatusOr<std::string> ImdsText(std::string_view answer);

// EC2's instance metadata service, version 2: a token first, then what is asked for. Blocks for at
// most about `timeout_ms` for each of the two requests; to be used before the agent runs.
class ImdsClient {
 public:
  struct Options {
    std::string host = "169.254.169.254";  // an IPv4 address
    uint16_t port = 80;
    int timeout_ms = 300;
  };

  explicit ImdsClient(Options options) : options_(std::move(options)) {}

  // The text at /latest/meta-data/`name`, with the errors of ImdsText(), and UNAVAILABLE where
  // nobody answers in time.
  absl::StatusOr<std::string> Get(const std::string& name);

 private:
  absl::StatusOr<std::string> Request(const std::string& request);

  const Options options_;
  std::string token_;
};

}  // namespace neurontrace
