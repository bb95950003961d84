// SPDX-License-Identifier: Apache-2.0
// Goal: an archive holds every byte of files that grow at once, as tar programs read it, and
// hostile or endless input fails.
#include "lib/web/tar_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// Reads everything that is ready.
std::string Drain(TarSpool& spool) {
  std::string archive;
  std::string piece;
  while (spool.Read(piece).ok() && !piece.empty()) archive += piece;
  return archive;
}

uint64_t Octal(const std::string& text) { return std::stoull(text, nullptr, 8); }

// Unpacks an archive, with records of pax; fails the test where its form is wrong.
std::map<std::string, std::string> Unpack(const std::string& archive) {
  std::map<std::string, std::string> files;
  std::string path;
  size_t at = 0;
  while (at + 512 <= archive.size() && archive[at] != '\0') {
    std::string head = archive.substr(at, 512);
    EXPECT_EQ(head.substr(257, 8), std::string("ustar\00000", 8));
    const uint64_t expected = Octal(head.substr(148, 6));
    head.replace(148, 8, "        ");
    uint64_t sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    EXPECT_EQ(sum, expected);
    const uint64_t bytes = Octal(head.substr(124, 11));
    const std::string content = archive.substr(at + 512, bytes);
    EXPECT_EQ(content.size(), bytes);
    if (head[156] == 'x') {
      const size_t key = content.find(" path=");
      EXPECT_EQ(std::stoull(content), content.size()) << "one record, which counts itself";
      path = content.substr(key + 6, content.size() - key - 7);
    } else {
      if (path.empty()) path = head.substr(0, 100).c_str();
      files[path] = content;
      path.clear();
    }
    at += 512 + (bytes + 511) / 512 * 512;
  }
  EXPECT_EQ(archive.size() - at, 1024u) << "two empty blocks";
  return files;
}

TEST(TarSpoolTest, KeepsFilesThatGrowAtOnce) {
  TarSpool spool({.directory = "01ABC.parquet", .modified_s = 1'750'000'000});
  ASSERT_TRUE(spool.Begin("a.parquet").ok());
  ASSERT_TRUE(spool.Begin("sub/b.parquet").ok());
  ASSERT_TRUE(spool.Write(1, std::string(700, 'b')).ok());
  ASSERT_TRUE(spool.Write(0, "first").ok());
  EXPECT_EQ(Drain(spool), "") << "no file has ended";
  ASSERT_TRUE(spool.End(1).ok());
  std::string archive = Drain(spool);
  EXPECT_GT(archive.size(), 700u);
  ASSERT_TRUE(spool.Write(0, " and second").ok());
  ASSERT_TRUE(spool.Begin("empty").ok());
  ASSERT_TRUE(spool.End(2).ok());
  ASSERT_TRUE(spool.End(0).ok());
  ASSERT_TRUE(spool.Finish().ok());
  archive += Drain(spool);
  EXPECT_EQ(Unpack(archive), (std::map<std::string, std::string>{
                                 {"01ABC.parquet/a.parquet", "first and second"},
                                 {"01ABC.parquet/sub/b.parquet", std::string(700, 'b')},
                                 {"01ABC.parquet/empty", ""}}));
}

TEST(TarSpoolTest, KeepsLongPathsAndWholeBlocks) {
  TarSpool spool({.directory = "d"});
  const std::string name = std::string(90, 'n') + "/" + std::string(200, 'm');
  ASSERT_TRUE(spool.Begin(name).ok());
  ASSERT_TRUE(spool.Write(0, std::string(1024, 'x')).ok());
  ASSERT_TRUE(spool.End(0).ok());
  ASSERT_TRUE(spool.Finish().ok());
  EXPECT_EQ(Unpack(Drain(spool)),
            (std::map<std::string, std::string>{{"d/" + name, std::string(1024, 'x')}}));
}

TEST(TarSpoolTest, EmptyExportIsAnEmptyArchive) {
  TarSpool spool({.directory = "d"});
  ASSERT_TRUE(spool.Finish().ok());
  EXPECT_TRUE(Unpack(Drain(spool)).empty());
}

TEST(TarSpoolTest, RefusesMoreBytesThanItMayKeep) {
  TarSpool spool({.directory = "d", .bytes_max = 10});
  ASSERT_TRUE(spool.Begin("a").ok());
  ASSERT_TRUE(spool.Write(0, "12345678").ok());
  EXPECT_EQ(spool.Write(0, "123").code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(spool.End(0).ok());
  Drain(spool);
  ASSERT_TRUE(spool.Begin("b").ok());
  EXPECT_TRUE(spool.Write(1, "0123456789").ok()) << "the first file's space is free again";
}

TEST(TarSpoolTest, RefusesNamesThatLeadElsewhere) {
  TarSpool spool({.directory = "d"});
  for (const char* const name :
       {"", "/etc/passwd", "../x", "a/../../x", "a/..", "./a", "a//b", "a/"}) {
    EXPECT_EQ(spool.Begin(name).code(), absl::StatusCode::kDataLoss) << name;
  }
}

TEST(TarSpoolTest, RefusesRepliesThatDoNotFit) {
  TarSpool spool({.directory = "d"});
  EXPECT_EQ(spool.Write(0, "x").code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(spool.Begin("a").ok());
  EXPECT_EQ(spool.End(1).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(spool.Finish().message()), HasSubstr("did not end 1"));
  ASSERT_TRUE(spool.End(0).ok());
  EXPECT_EQ(spool.Write(0, "x").code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace neurontrace
