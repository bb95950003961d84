// SPDX-License-Identifier: Apache-2.0
// What is read of a service's replies, of tokens and of credentials.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/deliver/s3_volume.h"
#include "aggregator/deliver/s3_xml.h"
#include "base/unique_fd.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// A service on this machine that gives every request the same answer.
class SameAnswer {
 public:
  SameAnswer(std::string_view status, std::string_view body)
      : answer_(fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                            status, body.size(), body)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), at, size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), at, &size), 0);
    endpoint_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~SameAnswer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::unique_ptr<S3Client> Client() const {
    const Environment environment = [](const char*) { return std::string("x"); };
    return *S3Client::Make({.endpoint = endpoint_, .region = "r"}, "bucket", environment);
  }
  int requests() const { return requests_; }

 private:
  void Serve() {
    while (true) {
      const UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
      if (!peer.valid()) return;
      std::string request;
      char bytes[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = recv(peer.get(), bytes, sizeof(bytes), 0);
        if (got <= 0) break;
        request.append(bytes, static_cast<size_t>(got));
      }
      ++requests_;
      send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  const std::string answer_;
  const UniqueFd listener_;
  std::string endpoint_;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

TEST(S3XmlTest, ReadsElementsAndEntities) {
  constexpr std::string_view kXml =
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3\"><KeyCount>2</KeyCount>"
      "<Contents><Key>a&amp;b&#x2F;c</Key><Size>5</Size></Contents>"
      "<Contents><Key>d</Key></Contents></ListBucketResult>";
  const auto contents = XmlElements(kXml, "Contents");
  ASSERT_EQ(contents.size(), 2u);
  EXPECT_EQ(XmlText(contents[0], "Key"), "a&b/c");
  EXPECT_EQ(XmlText(contents[1], "Key"), "d");
  EXPECT_EQ(XmlText(kXml, "Key"), "a&b/c") << "and not KeyCount";
  EXPECT_EQ(XmlText(kXml, "None"), "");
}

TEST(S3XmlTest, HalfOfItIsNoHarm) {
  for (const char* xml :
       {"<", "<A", "<A>", "<A>x", "<A>x</B>", "<A>&amp", "</A><A>", "<A >&#x;&#0;"}) {
    EXPECT_EQ(XmlText(xml, "A"), "") << xml;
  }
}

TEST(S3UploadTest, TokensAreReadAsTheyWereWritten) {
  const S3Upload upload{.id = "u-1", .mark = "m.1", .parts = {{"\"e1\"", "h1"}, {"\"e2\"", "h2"}}};
  const S3Upload read = ParseUpload(FormatUpload(upload));
  EXPECT_EQ(read.id, "u-1");
  EXPECT_EQ(read.mark, "m.1");
  ASSERT_EQ(read.parts.size(), 2u);
  EXPECT_EQ(read.parts[1].etag, "\"e2\"");
  EXPECT_EQ(read.parts[1].sha256, "h2");
  for (const char* bad :
       {"", "u\n", "u \n", "a b c\n", "u m\nnoblank\n", "u m\n<x> h\n", "u m\n h\n", "u m\ne \n"}) {
    EXPECT_EQ(ParseUpload(bad).id, "") << bad;
  }
}

TEST(S3TimeTest, IsOfUtc) {
  EXPECT_EQ(ParseS3Time("2026-11-22T12:00:00.000Z"), 1'795'348'800'000'000'000u);
  EXPECT_EQ(ParseS3Time("yesterday"), 0u);
}

TEST(S3CredentialsTest, ComeFromTheEnvironmentOrAProfile) {
  std::map<std::string, std::string> values = {{"AWS_ACCESS_KEY_ID", "id"},
                                               {"AWS_SECRET_ACCESS_KEY", "secret"}};
  const Environment environment = [&](const char* name) { return values[name]; };
  EXPECT_EQ(FindS3Credentials(environment)->key_id, "id");

  const std::string path = testing::TempDir() + "/s3_credentials";
  std::ofstream(path) << "# keys\n[default]\naws_access_key_id = one\naws_secret_access_key=two=\n"
                         "[other]\naws_access_key_id=three\naws_secret_access_key=four\n"
                         "aws_session_token = five\n";
  values = {{"AWS_SHARED_CREDENTIALS_FILE", path}};
  EXPECT_EQ(FindS3Credentials(environment)->secret, "two=");
  values["AWS_PROFILE"] = "other";
  EXPECT_EQ(FindS3Credentials(environment)->session_token, "five");
  values["AWS_PROFILE"] = "none";
  const auto missing = FindS3Credentials(environment).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("profile none of " + path));
  std::filesystem::remove(path);
}

TEST(S3ClientTest, EndpointsAreHosts) {
  for (const char* good :
       {"s3.example.com", "https://s3.example.com:9000", "http://127.0.0.1:7070"}) {
    EXPECT_EQ(CheckS3Endpoint(good), "") << good;
  }
  for (const char* bad : {"", "https://", "ftp://x", "host/path", "https://user@host"}) {
    EXPECT_NE(CheckS3Endpoint(bad), "") << bad;
  }
}

TEST(S3ClientTest, SaysWhatToDo) {
  EXPECT_THAT(S3Remedy(403, "SignatureDoesNotMatch"), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(S3Remedy(403, ""), HasSubstr("AWS_SECRET_ACCESS_KEY")) << "HEAD says no more";
  EXPECT_THAT(S3Remedy(404, "XAdminUserNotFound"), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(S3Remedy(403, "RequestTimeTooSkewed"), HasSubstr("clock"));
  EXPECT_THAT(S3Remedy(404, "NoSuchBucket"), HasSubstr("make the bucket"));
  EXPECT_THAT(S3Remedy(400, "AuthorizationHeaderMalformed"), HasSubstr("--s3-region"));
  EXPECT_EQ(S3Remedy(404, "NoSuchKey"), "");
  EXPECT_EQ(S3Remedy(503, "SlowDown"), "");
}

TEST(S3ClientTest, WhatAServiceSaysIsFitForLogs) {
  const SameAnswer service("403 Forbidden",
                           "<Code>A\x1b[2J</Code><Message>b\nc&#27;d\xff</Message>");
  const absl::Status status = service.Client()->Do({.method = "GET", .key = "k"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("HTTP 403, A?[2J: b?c?d?;"));
}

TEST(S3VolumeTest, AListThatNeverEndsIsEnded) {
  const SameAnswer service("200 OK",
                           "<IsTruncated>true</IsTruncated>"
                           "<NextContinuationToken>more</NextContinuationToken>");
  S3Volume volume(service.Client(), "p", "n");
  EXPECT_EQ(volume.List("d", 10).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(service.requests(), 1000);
}

TEST(S3ClientTest, AServiceThatIsNotThereIsUnavailable) {
  const Environment environment = [](const char*) { return std::string("x"); };
  const auto client =
      S3Client::Make({.endpoint = "http://127.0.0.1:1", .region = "r"}, "bucket", environment);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->Do({.method = "GET", .key = "k"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace neurontrace
