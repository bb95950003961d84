// SPDX-License-Identifier: Apache-2.0
// What is read of a service's replies, of tokens and of credentials.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/deliver/s3_volume.h"
#include "aggregator/deliver/s3_xml.h"
#include "aggregator/http/fake_http_server.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// A service on this machine that gives every request the same answer.
class SameAnswer {
 public:
  SameAnswer(std::string status, std::string body)
      : server_([status = std::move(status), body = std::move(body)](const auto&) {
          return FakeHttpServer::Answer{.status = status, .body = body};
        }) {}
  std::unique_ptr<S3Client> Client() const {
    const Environment environment = [](const char* name) {
      return std::string_view(name) == "AWS_CA_BUNDLE" ? "" : std::string("x");
    };
    return *S3Client::Make({.endpoint = server_.url(), .region = "r"}, "bucket", environment);
  }
  size_t requests() const { return server_.requests().size(); }

 private:
  const FakeHttpServer server_;
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

TEST(S3XmlTest, ToleratesTruncatedXml) {
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
  EXPECT_EQ(ParseS3Time("1969-12-31T23:59:59Z"), 0u);
  EXPECT_EQ(ParseS3Time("2554-07-21T23:34:33Z"), 18'446'744'073'000'000'000u);
  EXPECT_EQ(ParseS3Time("2554-07-21T23:34:34Z"), UINT64_MAX) << "beyond the range of the type";
  EXPECT_EQ(ParseS3Time("9999-12-31T23:59:59Z"), UINT64_MAX) << "beyond the range: never";
}

TEST(S3ClientTest, EndpointsAreHosts) {
  for (const char* good :
       {"s3.example.com", "https://s3.example.com:9000", "http://127.0.0.1:7070"}) {
    EXPECT_EQ(CheckS3Endpoint(good), "") << good;
  }
  for (const char* bad : {"", "https://", "ftp://x", "host/path", "https://user@host", "host:99999",
                          "host:27400x", "host:", "host:0"}) {
    EXPECT_NE(CheckS3Endpoint(bad), "") << bad;
  }
}

TEST(S3ClientTest, SuggestsRemedy) {
  EXPECT_THAT(S3Remedy(403, "SignatureDoesNotMatch"), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(S3Remedy(403, ""), HasSubstr("AWS_SECRET_ACCESS_KEY"))
      << "an answer to HEAD has no code";
  EXPECT_THAT(S3Remedy(404, "XAdminUserNotFound"), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  EXPECT_THAT(S3Remedy(403, "RequestTimeTooSkewed"), HasSubstr("clock"));
  EXPECT_THAT(S3Remedy(404, "NoSuchBucket"), HasSubstr("create the bucket"));
  EXPECT_THAT(S3Remedy(400, "AuthorizationHeaderMalformed"), HasSubstr("--s3-region"));
  EXPECT_THAT(S3Remedy(400, "ExpiredToken"), HasSubstr("have not expired"));
  EXPECT_EQ(S3Remedy(404, "NoSuchKey"), "");
  EXPECT_EQ(S3Remedy(503, "SlowDown"), "");
}

TEST(S3ClientTest, ServiceTextIsSafeForLogs) {
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
  EXPECT_LE(service.requests(), 1000u);
}

TEST(S3ClientTest, AServiceThatIsNotThereIsUnavailable) {
  const Environment environment = [](const char* name) {
    return std::string_view(name) == "AWS_CA_BUNDLE" ? "" : std::string("x");
  };
  const auto client =
      S3Client::Make({.endpoint = "http://127.0.0.1:1", .region = "r"}, "bucket", environment);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->Do({.method = "GET", .key = "k"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace neurontrace
