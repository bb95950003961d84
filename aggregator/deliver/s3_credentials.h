// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/http/http_client.h"

namespace neurontrace {

// Keys of an account or of a role. Secret: must appear in no log and no message.
struct S3Credentials {
  std::string key_id;
  std::string secret;
  // Empty for keys of an account.
  std::string session_token;
  // When they expire, in nanoseconds since 1970; UINT64_MAX: never.
  uint64_t end_realtime_ns = UINT64_MAX;
};
// Returns whether they expire within five minutes or have expired.
bool ExpireSoon(const S3Credentials& credentials, uint64_t realtime_ns);

// Returns the value of an environment variable, or an empty text. Injected for tests.
using Environment = std::function<std::string(const char* name)>;
std::string SystemEnvironment(const char* name);

// Finds credentials where AWS's own tools do, in their order, and uses the first that are named:
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
//   2. the role of a service account;
//   3. the profile AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials);
//   4. the role of the container;
//   5. the role of the EC2 instance (role_credentials.h).
// Used by one thread at a time; blocks for about ten seconds at most.
class S3CredentialsFinder {
 public:
  // `region` and `authorities` serve to ask about a role, see RoleQuestion.
  S3CredentialsFinder(Environment environment, std::string region, std::string authorities)
      : environment_(std::move(environment)),
        region_(std::move(region)),
        authorities_(std::move(authorities)) {}

  // Asks again on each call, because credentials are exchanged. Fails with FAILED_PRECONDITION if
  // none are found or those that are named cannot be used, and with UNAVAILABLE if another attempt
  // may succeed.
  absl::StatusOr<S3Credentials> Find();

 private:
  const Environment environment_;
  const std::string region_;
  const std::string authorities_;
  HttpClient http_;
};

// Returns a profile of a credentials file's text; empty keys if it has no such profile.
S3Credentials CredentialsOfProfile(std::string_view text, std::string_view profile);

}  // namespace neurontrace
