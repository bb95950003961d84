// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_credentials.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/status.h"

namespace neurontrace {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::string SystemEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

S3Credentials CredentialsOfProfile(std::string_view text, std::string_view profile) {
  S3Credentials credentials;
  bool is_in = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      is_in = Trimmed(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    const size_t equals = line.find('=');
    if (!is_in || equals == std::string_view::npos) continue;
    const std::string_view key = Trimmed(line.substr(0, equals));
    const std::string value(Trimmed(line.substr(equals + 1)));
    if (key == "aws_access_key_id") credentials.key_id = value;
    if (key == "aws_secret_access_key") credentials.secret = value;
    if (key == "aws_session_token") credentials.session_token = value;
  }
  return credentials;
}

absl::StatusOr<S3Credentials> FindS3Credentials(const Environment& environment) {
  S3Credentials credentials{.key_id = environment("AWS_ACCESS_KEY_ID"),
                            .secret = environment("AWS_SECRET_ACCESS_KEY"),
                            .session_token = environment("AWS_SESSION_TOKEN")};
  if (!credentials.key_id.empty() && !credentials.secret.empty()) return credentials;
  std::string path = environment("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = environment("HOME") + "/.aws/credentials";
  std::string profile = environment("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  credentials = CredentialsOfProfile(text, profile);
  if (!credentials.key_id.empty() && !credentials.secret.empty()) return credentials;
  return FailedPrecondition(
      "the aggregator has no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
      "in its environment, or write them into profile {} of {}",
      profile, path);
}

}  // namespace neurontrace
