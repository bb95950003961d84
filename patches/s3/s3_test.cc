// SPDX-License-Identifier: Apache-2.0
// What is read of a service's replies, of tokens and of credentials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/deliver/s3_volume.h"
#include "aggregator/deliver/s3_xml.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

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
  const S3Upload upload{.id = "u-1", .parts = {{"\"e1\"", "h1"}, {"\"e2\"", "h2"}}};
  const S3Upload read = ParseUpload(FormatUpload(upload));
  EXPECT_EQ(read.id, "u-1");
  ASSERT_EQ(read.parts.size(), 2u);
  EXPECT_EQ(read.parts[1].etag, "\"e2\"");
  EXPECT_EQ(read.parts[1].sha256, "h2");
  for (const char* bad : {"", "a b\n", "u\nnoblank\n", "u\n<x> h\n", "u\n h\n", "u\ne \n"}) {
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
