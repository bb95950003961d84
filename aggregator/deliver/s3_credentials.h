// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace neurontrace {

struct S3Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // empty: none
};

// The value of an environment variable; empty where it is not set. Handed in for tests.
using Environment = std::function<std::string(const char* name)>;
std::string SystemEnvironment(const char* name);

// As AWS's own tools find them: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or
// the profile AWS_PROFILE (default) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Nothing is
// asked over the network. FAILED_PRECONDITION says what was looked for. Read anew for each export,
// as such files are exchanged.
absl::StatusOr<S3Credentials> FindS3Credentials(const Environment& environment);

// A profile of the text of such a file; empty where it is not there.
S3Credentials CredentialsOfProfile(std::string_view text, std::string_view profile);

}  // namespace neurontrace
