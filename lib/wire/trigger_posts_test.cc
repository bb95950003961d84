// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/trigger_posts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

TriggerPosts Parsed(const std::string& arguments) {
  CLI::App app;
  TriggerPosts posts = TriggerPosts::kThisMachine;
  AddTriggerPostsOption(app, posts);
  app.parse(arguments);
  return posts;
}

TEST(TriggerPosts, RemotePostsRequireOption) {
  EXPECT_EQ(Parsed(""), TriggerPosts::kThisMachine);
  EXPECT_THROW(Parsed("--trigger-posts everybody"), CLI::ParseError);
  EXPECT_TRUE(CheckTriggerPosts(TriggerPosts::kThisMachine, "0.0.0.0:9402").ok());
  EXPECT_TRUE(CheckTriggerPosts(Parsed("--trigger-posts anybody"), "127.0.0.1:9402").ok());
  EXPECT_THAT(
      std::string(CheckTriggerPosts(Parsed("--trigger-posts anybody"), "0.0.0.0:9402").message()),
      HasSubstr("--trigger-posts anybody-insecure"));
  EXPECT_TRUE(CheckTriggerPosts(Parsed("--trigger-posts anybody-insecure"), "0.0.0.0:9402").ok());
}

}  // namespace
}  // namespace neurontrace
