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

struct S3Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;              // empty: none
  uint64_t end_realtime_ns = UINT64_MAX;  // UINT64_MAX: they do not end
};
// Whether they end within five minutes, or have ended.
bool ExpireSoon(const S3Credentials& credentials, uint64_t realtime_ns);

// The value of an environment variable; empty where it is not set. Handed in for tests.
using Environment = std::function<std::string(const char* name)>;
std::string SystemEnvironment(const char* name);

// Finds credentials where AWS's own tools do, in their order, and takes the first that are named:
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the role of a service account;
// the profile AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); the role
// of the container; the role of the EC2 instance (role_credentials.h). One thread at a time; blocks
// for about ten seconds at most.
class S3CredentialsFinder {
 public:
  // `region` and `authorities`: for who is asked about a role, see RoleQuestion.
  S3CredentialsFinder(Environment environment, std::string region, std::string authorities)
      : environment_(std::move(environment)),
        region_(std::move(region)),
        authorities_(std::move(authorities)) {}

  // FAILED_PRECONDITION says what was looked for, or why those that are named cannot be had;
  // UNAVAILABLE where another try may have them. Asks again each time, as they are exchanged.
  absl::StatusOr<S3Credentials> Find();

 private:
  const Environment environment_;
  const std::string region_;
  const std::string authorities_;
  HttpClient http_;
};

// A profile of the text of such a file; empty where it is not there.
S3Credentials CredentialsOfProfile(std::string_view text, std::string_view profile);

}  // namespace neurontrace
