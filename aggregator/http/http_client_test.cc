// SPDX-License-Identifier: Apache-2.0
#include "aggregator/http/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "aggregator/http/fake_http_server.h"
#include "lib/base/temporary_directory.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Directory : public TemporaryDirectory {
 public:
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
};

TEST(HttpClientTest, SendsRequestAndReceivesReply) {
  const FakeHttpServer server([](const FakeHttpServer::Request&) {
    return FakeHttpServer::Answer{
        .status = "201 Created", .body = "made", .headers = "ETag:  \"e 1\" \r\nX-None:\r\n"};
  });
  const auto reply = HttpClient().Send({.method = "POST",
                                        .url = server.url() + "/a?b=c",
                                        .headers = {"X-Mine: yes"},
                                        .body = "question"});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 201);
  EXPECT_EQ(reply->body, "made");
  EXPECT_EQ(reply->content_bytes, 4u);
  EXPECT_EQ(reply->Header("etag"), "\"e 1\"");
  EXPECT_EQ(reply->Header("X-None"), "");
  EXPECT_EQ(reply->Header("X-Non"), "");
  ASSERT_EQ(server.requests().size(), 1u);
  const FakeHttpServer::Request request = server.requests()[0];
  EXPECT_EQ(request.method + " " + request.target, "POST /a?b=c");
  EXPECT_EQ(request.body, "question");
  EXPECT_THAT(request.head, HasSubstr("X-Mine: yes\r\n"));
  EXPECT_THAT(request.head, Not(HasSubstr("Authorization")));
}

TEST(HttpClientTest, ReusedClientKeepsNoState) {
  const FakeHttpServer server(
      [](const FakeHttpServer::Request&) { return FakeHttpServer::Answer{.body = "x"}; });
  HttpClient client;
  ASSERT_TRUE(client
                  .Send({.method = "PUT",
                         .url = server.url() + "/1",
                         .headers = {"X-Once: s"},
                         .body = "b",
                         .signing = HttpSigning{"r", "s3", "id", "secret"}})
                  .ok());
  ASSERT_TRUE(client.Send({.method = "HEAD", .url = server.url() + "/2"}).ok());
  ASSERT_TRUE(client.Send({.url = server.url() + "/3"}).ok());
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_THAT(requests[0].head, HasSubstr("AWS4-HMAC-SHA256 Credential=id/"));
  EXPECT_THAT(requests[0].head, Not(HasSubstr("secret")));
  EXPECT_EQ(requests[1].method, "HEAD");
  EXPECT_EQ(requests[2].method, "GET");
  EXPECT_THAT(requests[2].head, Not(HasSubstr("X-Once")));
  EXPECT_THAT(requests[2].head, Not(HasSubstr("AWS4")));
}

TEST(HttpClientTest, RedirectionsAreNotFollowed) {
  const FakeHttpServer server([](const FakeHttpServer::Request&) {
    return FakeHttpServer::Answer{.status = "302 Found",
                                  .headers = "Location: file:///etc/passwd\r\n"};
  });
  EXPECT_EQ(HttpClient().Send({.url = server.url()})->status, 302);
  EXPECT_EQ(HttpClient().Send({.url = "file:///etc/passwd"}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(HttpClientTest, RejectsOversizedReply) {
  const FakeHttpServer server([](const FakeHttpServer::Request&) {
    return FakeHttpServer::Answer{.body = std::string(100'000, 'x')};
  });
  EXPECT_EQ(HttpClient().Send({.url = server.url(), .reply_bytes_max = 99'999}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(HttpClientTest, ErrorsNameTheServerAndNothingElse) {
  const absl::Status status =
      HttpClient().Send({.url = "http://127.0.0.1:1/path?token=secret"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("http://127.0.0.1:1: "));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
}

TEST(HttpClientTest, AFileOfAuthoritiesWithoutAnyIsNoReasonToTryAgain) {
  const Directory directory;
  directory.Write("ca.pem", "nothing\n");
  const FakeHttpServer server(
      [](const FakeHttpServer::Request&) { return FakeHttpServer::Answer{}; });
  const std::string url = "https" + server.url().substr(4);
  const absl::Status status =
      HttpClient().Send({.url = url, .authorities = directory / "ca.pem"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ca.pem"));
}

TEST(MachineAuthoritiesTest, AreWhereTheDistributionHasThem) {
  const Directory directory;
  EXPECT_EQ(MachineAuthorities(directory.path()), "");
  directory.Write("etc/pki/tls/certs/ca-bundle.crt", "amazon linux");
  EXPECT_EQ(MachineAuthorities(directory.path()), directory / "etc/pki/tls/certs/ca-bundle.crt");
  directory.Write("etc/ssl/certs/ca-certificates.crt", "debian");
  EXPECT_EQ(MachineAuthorities(directory.path()), directory / "etc/ssl/certs/ca-certificates.crt");
}

TEST(UrlEscapedTest, LeavesLettersDigitsAndFourMarks) {
  EXPECT_EQ(UrlEscaped("aZ09-._~/ +%\xff"), "aZ09-._~%2F%20%2B%25%FF");
  EXPECT_EQ(UrlEscaped("a/b c", /*keep_slashes=*/true), "a/b%20c");
}

}  // namespace
}  // namespace neurontrace
