// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_credentials.h"

#include <cstdlib>

#include "aggregator/deliver/role_credentials.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {
namespace {

// With the carriage return of files that were edited on Windows.
std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool HasKeys(const S3Credentials& credentials) {
  return !credentials.key_id.empty() && !credentials.secret.empty();
}

}  // namespace

std::string SystemEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Reads the INI form of AWS's tools; later values of a key win.
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
    // Other keys of the profile, such as role_arn, are not supported and ignored.
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

bool ExpireSoon(const S3Credentials& credentials, uint64_t realtime_ns) {
  // Longer than a request takes with all its attempts.
  constexpr uint64_t kSoonNs = 300'000'000'000;
  return credentials.end_realtime_ns < realtime_ns ||
         credentials.end_realtime_ns - realtime_ns < kSoonNs;
}

absl::StatusOr<S3Credentials> S3CredentialsFinder::Find() {
  S3Credentials credentials{.key_id = environment_("AWS_ACCESS_KEY_ID"),
                            .secret = environment_("AWS_SECRET_ACCESS_KEY"),
                            .session_token = environment_("AWS_SESSION_TOKEN")};
  if (HasKeys(credentials)) return credentials;
  const RoleQuestion question{environment_, region_, authorities_, http_};
  // A named role that fails ends the search: falling back to other credentials would write with the
  // rights of somebody else.
  ASSIGN_OR_RETURN(const auto of_service_account, WebIdentityCredentials(question));
  if (of_service_account) return *of_service_account;
  std::string path = environment_("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = environment_("HOME") + "/.aws/credentials";
  std::string profile = environment_("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  // A missing file is normal; another error is added to the message at the end.
  const auto text = ReadSmallFile(path, limits::kS3CredentialsFileBytesMax);
  credentials = CredentialsOfProfile(text.value_or(""), profile);
  if (HasKeys(credentials)) return credentials;
  ASSIGN_OR_RETURN(const auto of_container, ContainerCredentials(question));
  if (of_container) return *of_container;
  ASSIGN_OR_RETURN(const auto of_instance, InstanceCredentials(question));
  if (of_instance) return *of_instance;
  return FailedPrecondition(
      "the aggregator has no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
      "in its environment, add them to profile {} of {}, or give its service account, container or "
      "EC2 instance a role{}",
      profile, path,
      absl::IsFailedPrecondition(text.status())
          ? fmt::format(" ({})", std::string(text.status().message()))
          : "");
}

}  // namespace neurontrace
