// SPDX-License-Identifier: Apache-2.0
// Where credentials come from, in which order, and what is said where they cannot be had. The
// services are servers of this machine that answer in AWS's documented words.
#include "aggregator/deliver/role_credentials.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/s3_xml.h"
#include "aggregator/http/fake_http_server.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Answer = FakeHttpServer::Answer;
using Request = FakeHttpServer::Request;

constexpr char kEnd[] = "2026-11-22T12:00:00Z";

// As the container's and the instance's services answer.
std::string RoleJson(std::string_view key_id, std::string_view end = kEnd) {
  return fmt::format(
      R"({{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":"{}","SecretAccessKey":"s","Token":"t","Expiration":"{}"}})",
      key_id, end);
}

// As STS answers.
std::string WebIdentityXml(std::string_view key_id, std::string_view end = kEnd) {
  return fmt::format(
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>x"
      "</SubjectFromWebIdentityToken><Credentials><SessionToken>t</SessionToken>"
      "<SecretAccessKey>s</SecretAccessKey><Expiration>{}</Expiration>"
      "<AccessKeyId>{}</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"
      "</AssumeRoleWithWebIdentityResponse>",
      end, key_id);
}

// EC2's metadata service, version 2, of an instance with the role `role`; empty: without one.
Answer Metadata(const Request& request, const std::string& role) {
  constexpr std::string_view kRoles = "/latest/meta-data/iam/security-credentials/";
  if (request.method == "PUT" && request.target == "/latest/api/token") {
    return {.body = "imds-token"};
  }
  if (request.head.find("X-aws-ec2-metadata-token: imds-token\r\n") == std::string::npos) {
    return {.status = "401 Unauthorized"};
  }
  if (role.empty() || !request.target.starts_with(kRoles)) return {.status = "404 Not Found"};
  if (request.target == kRoles) return {.body = role};
  if (request.target == std::string(kRoles) + role) return {.body = RoleJson("of-instance")};
  return {.status = "404 Not Found"};
}

class RoleCredentialsTest : public ::testing::Test {
 protected:
  RoleCredentialsTest() {
    // Nothing here asks an address beyond this machine.
    Set("AWS_EC2_METADATA_DISABLED", "true");
    Set("HOME", directory_.path());
    std::ofstream(directory_ / "token") << "of-kubernetes\n";
  }

  void Set(const std::string& name, const std::string& value) {
    const std::scoped_lock lock(mutex_);
    variables_[name] = value;
  }
  Environment environment() {
    return [this](const char* name) {
      const std::scoped_lock lock(mutex_);
      return variables_[name];
    };
  }
  absl::StatusOr<S3Credentials> Find() {
    return S3CredentialsFinder(environment(), "eu-north-1", "").Find();
  }
  std::string Error() { return std::string(Find().status().message()); }
  void NameWebIdentity(const std::string& url) {
    Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/a b");
    Set("AWS_WEB_IDENTITY_TOKEN_FILE", directory_ / "token");
    Set("AWS_ENDPOINT_URL_STS", url);
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::map<std::string, std::string> variables_;
};

TEST_F(RoleCredentialsTest, TheFirstThatIsNamedIsTaken) {
  const FakeHttpServer sts([](const Request&) { return Answer{.body = WebIdentityXml("of-sts")}; });
  const FakeHttpServer container(
      [](const Request&) { return Answer{.body = RoleJson("of-container")}; });
  const FakeHttpServer instance([](const Request& request) { return Metadata(request, "a role"); });
  EXPECT_THAT(Error(), HasSubstr("has no credentials for S3"));
  Set("AWS_EC2_METADATA_DISABLED", "");
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", instance.url() + "/");
  // The name of a role with a blank is no target of a request: it is escaped.
  EXPECT_THAT(Error(), HasSubstr("the instance's role (EC2's metadata service): HTTP 404"));
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url() + "/v1/credentials");
  EXPECT_EQ(Find()->key_id, "of-container");
  std::filesystem::create_directory(directory_ / ".aws");
  std::ofstream(directory_ / ".aws" / "credentials")
      << "[default]\naws_access_key_id=of-profile\naws_secret_access_key=s\n";
  EXPECT_EQ(Find()->key_id, "of-profile");
  NameWebIdentity(sts.url());
  EXPECT_EQ(Find()->key_id, "of-sts");
  Set("AWS_ACCESS_KEY_ID", "of-environment");
  EXPECT_EQ(Find()->key_id, "of-sts") << "an id without its key is ignored";
  Set("AWS_SECRET_ACCESS_KEY", "s");
  EXPECT_EQ(Find()->key_id, "of-environment");
  EXPECT_EQ(Find()->end_realtime_ns, UINT64_MAX);
}

TEST_F(RoleCredentialsTest, AProfileHasAName) {
  const std::string path = directory_ / "keys";
  std::ofstream(path) << "# keys\n[default]\naws_access_key_id = one\naws_secret_access_key=two=\n"
                         "[other]\naws_access_key_id=three\naws_secret_access_key=four\n"
                         "aws_session_token = five\n";
  Set("AWS_SHARED_CREDENTIALS_FILE", path);
  EXPECT_EQ(Find()->secret, "two=");
  Set("AWS_PROFILE", "other");
  EXPECT_EQ(Find()->session_token, "five");
  Set("AWS_PROFILE", "none");
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Error(), HasSubstr("profile none of " + path));
}

TEST_F(RoleCredentialsTest, AServiceAccountShowsItsToken) {
  const FakeHttpServer sts([](const Request&) { return Answer{.body = WebIdentityXml("id")}; });
  NameWebIdentity(sts.url());
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->secret, "s");
  EXPECT_EQ(found->session_token, "t");
  EXPECT_EQ(found->end_realtime_ns, ParseS3Time(kEnd));
  const Request request = sts.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
            "role%2Fa%20b&RoleSessionName=neurontrace&WebIdentityToken=of-kubernetes");
  EXPECT_THAT(request.head, Not(HasSubstr("of-kubernetes")));
}

TEST_F(RoleCredentialsTest, ReportsStsRefusalWithoutToken) {
  const FakeHttpServer sts([](const Request&) {
    return Answer{.status = "403 Forbidden",
                  .body =
                      "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized "
                      "to perform\x1b sts</Message></Error></ErrorResponse>"};
  });
  NameWebIdentity(sts.url());
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Error(), AllOf(HasSubstr("role arn:aws:iam::1:role/a b (AWS_ROLE_ARN): HTTP 403, "
                                       "AccessDenied: Not authorized to perform? sts"),
                             Not(HasSubstr("of-kubernetes"))));
  const FakeHttpServer huge(
      [](const Request&) { return Answer{.body = std::string(1 << 20, 'x')}; });
  NameWebIdentity(huge.url());
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kFailedPrecondition);
  NameWebIdentity("http://127.0.0.1:1");
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kUnavailable);
  std::filesystem::remove(directory_ / "token");
  EXPECT_THAT(Error(), HasSubstr((directory_ / "token").string()));
}

TEST_F(RoleCredentialsTest, AContainerShowsTheTokenOfItsFile) {
  const FakeHttpServer container([](const Request& request) {
    const bool knows = request.head.find("Authorization: of-kubernetes\r\n") != std::string::npos;
    return knows ? Answer{.body = RoleJson("id")}
                 : Answer{.status = "400 Bad Request", .body = "no token"};
  });
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url() + "/v1/credentials");
  EXPECT_THAT(Error(), HasSubstr("HTTP 400, no token"));
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", directory_ / "token");
  EXPECT_EQ(Find()->key_id, "id");
  EXPECT_EQ(container.requests().back().target, "/v1/credentials");
}

TEST_F(RoleCredentialsTest, NoTokenGoesToAnAddressOfTheNetworkInPlainText) {
  for (const char* url :
       {"http://example.com/x", "http://127.evil.example/", "http://169.254.170.2@evil.example/",
        "http://localhost.evil.example/", "ftp://127.0.0.1/", "http://10.0.0.1/", "127.0.0.1"}) {
    Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    EXPECT_THAT(Error(), HasSubstr("but must use https")) << url;
  }
}

TEST_F(RoleCredentialsTest, IncompleteRoleSettingsAreError) {
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", directory_ / "token");
  EXPECT_THAT(Error(), HasSubstr("AWS_ROLE_ARN is not"));
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", "");
  Set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/");
  EXPECT_THAT(Error(), HasSubstr("'@evil.example/', but must begin with /"));
}

TEST_F(RoleCredentialsTest, AnInstanceMayHaveARoleOrNone) {
  std::string role = "traces";
  const FakeHttpServer instance([&](const Request& request) { return Metadata(request, role); });
  Set("AWS_EC2_METADATA_DISABLED", "");
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", instance.url());
  EXPECT_EQ(Find()->key_id, "of-instance");
  EXPECT_THAT(instance.requests().at(0).head,
              HasSubstr("X-aws-ec2-metadata-token-ttl-seconds: 60\r\n"));
  role = "";
  EXPECT_THAT(Error(), HasSubstr("has no credentials for S3"));
  Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1");
  EXPECT_THAT(Error(), HasSubstr("has no credentials for S3"));
}

TEST_F(RoleCredentialsTest, IncompleteRepliesAreRejected) {
  EXPECT_TRUE(ReadRoleJson(RoleJson("id")));
  EXPECT_TRUE(ReadWebIdentityAnswer(WebIdentityXml("id")));
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"AccessKeyId\":1}"),
        RoleJson(""), RoleJson("id", "soon"), RoleJson("a\\r\\nb"), std::string(1 << 20, '[')}) {
    EXPECT_FALSE(ReadRoleJson(text)) << text.substr(0, 200);
  }
  for (const std::string& text : {std::string("<x>"), WebIdentityXml(""), WebIdentityXml("id", ""),
                                  WebIdentityXml("a&#10;b")}) {
    EXPECT_FALSE(ReadWebIdentityAnswer(text)) << text;
  }
}

// An export can take longer than credentials last.
TEST_F(RoleCredentialsTest, RefreshesExpiringCredentials) {
  int asked = 0;
  const FakeHttpServer container([&](const Request&) {
    const bool is_first = asked++ == 0;
    return Answer{.body = RoleJson(fmt::format("id{}", asked),
                                   is_first ? "2020-01-01T00:00:00Z" : "2100-01-01T00:00:00Z")};
  });
  const FakeHttpServer bucket([](const Request&) { return Answer{}; });
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url());
  auto client = S3Client::Make({.endpoint = bucket.url(), .region = "r"}, "b", environment());
  ASSERT_TRUE(client.ok()) << client.status();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*client)->Do({.method = "GET", .key = "k"}).ok());
  EXPECT_EQ(container.requests().size(), 2u);
  for (const Request& request : bucket.requests()) {
    EXPECT_THAT(request.head, HasSubstr("Credential=id2/"));
    EXPECT_THAT(request.head, HasSubstr("x-amz-security-token: t\r\n"));
  }
}

TEST(ExpireSoonTest, IsWithinFiveMinutes) {
  constexpr uint64_t kMinuteNs = 60'000'000'000;
  S3Credentials credentials{.end_realtime_ns = 100 * kMinuteNs};
  EXPECT_FALSE(ExpireSoon(credentials, 95 * kMinuteNs));
  EXPECT_TRUE(ExpireSoon(credentials, 95 * kMinuteNs + 1));
  EXPECT_TRUE(ExpireSoon(credentials, 101 * kMinuteNs));
  credentials.end_realtime_ns = UINT64_MAX;
  EXPECT_FALSE(ExpireSoon(credentials, 101 * kMinuteNs));
}

}  // namespace
}  // namespace neurontrace
