// SPDX-License-Identifier: Apache-2.0
#include "aggregator/http/token_file.h"

#include "base/small_file.h"
#include "base/status.h"
#include "trace/access_limits.h"

namespace neurontrace {

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string token, ReadSmallFile(path, limits::kTokenBytesMax));
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos) {
    return FailedPrecondition("{} holds no token", path);
  }
  return token;
}

}  // namespace neurontrace
