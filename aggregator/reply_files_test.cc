// SPDX-License-Identifier: Apache-2.0
// Goal: several files through one stream of replies, in pieces, with names that are fit to be sent.
#include "aggregator/reply_files.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "trace/limits.h"

namespace neurontrace {
namespace {

TEST(ReplyFilesTest, PiecesSayWhoseTheyAre) {
  std::vector<v1::ExportReply> replies;
  const ExportWriter write = [&](const v1::ExportReply& reply) {
    replies.push_back(reply);
    return true;
  };
  ReplyFiles files(write);
  auto first = files.Open("a/one.bin");
  auto second = files.Open("two.bin");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*second)->Write(std::string(limits::kExportMessageBytes + 1, 'x')).ok());
  ASSERT_TRUE((*first)->Write("abc").ok());
  ASSERT_TRUE((*first)->Close().ok());
  ASSERT_EQ(replies.size(), 6u);
  EXPECT_EQ(replies[0].file(), "a/one.bin");
  EXPECT_EQ(replies[1].file(), "two.bin");
  EXPECT_EQ(replies[2].file_number(), 1u);
  EXPECT_EQ(replies[2].data().size(), limits::kExportMessageBytes);
  EXPECT_EQ(replies[3].data(), "x");
  EXPECT_EQ(replies[4].file_number(), 0u);
  EXPECT_EQ(replies[4].data(), "abc");
  EXPECT_TRUE(replies[5].file_end());
  EXPECT_EQ(replies[5].file_number(), 0u);
}

TEST(ReplyFilesTest, RefusesNamesAndSaysWhenNobodyListens) {
  bool listens = true;
  const ExportWriter write = [&](const v1::ExportReply&) { return listens; };
  ReplyFiles files(write);
  for (const char* name : {"", "/a", "a/", "../a", "a/./b", "a b", "a\\b", "a\nb"}) {
    EXPECT_EQ(files.Open(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(files.Open(std::string(limits::kExportNameBytesMax + 1, 'a')).ok());
  auto file = files.Open("a");
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(files.Open("a").ok()) << "twice";
  listens = false;
  EXPECT_EQ((*file)->Write("x").code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*file)->Close().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(files.Open("b").status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace neurontrace
