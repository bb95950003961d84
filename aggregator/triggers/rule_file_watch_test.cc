// SPDX-License-Identifier: Apache-2.0
// The goal: a new version of the file is taken when it is good, and never a bad one. On a real
// file.
#include "aggregator/triggers/rule_file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class RuleFileWatchTest : public testing::Test {
 protected:
  ~RuleFileWatchTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  const std::string path_ = testing::TempDir() + "/neurontrace-rules-" + std::to_string(getpid());
  SystemClock clock_;
  RuleFileWatch watch_{path_, clock_};
};

TEST_F(RuleFileWatchTest, TakesWhatIsGoodAndKeepsItWhenItTurnsBad) {
  EXPECT_FALSE(watch_.Load().ok());
  EXPECT_THAT(watch_.problem(), HasSubstr("there is no such file"));
  Write("[a]\nwhen = post\n");
  ASSERT_TRUE(watch_.Load().ok());
  EXPECT_EQ(watch_.problem(), "");
  EXPECT_FALSE(watch_.Look(false).has_value());
  Write("[a]\nwhen = posts\n");
  EXPECT_FALSE(watch_.Look(false).has_value());
  EXPECT_THAT(watch_.problem(), HasSubstr(path_ + ":2: rule a: when = posts"));
  Write("[b]\nwhen = post\n");
  const auto rules = watch_.Look(false);
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ((*rules)[0].name, "b");
  EXPECT_EQ(watch_.problem(), "");
}

TEST_F(RuleFileWatchTest, SaysThatItIsGoneAndTakesItWhenItComesBack) {
  Write("[a]\nwhen = post\n");
  ASSERT_TRUE(watch_.Load().ok());
  std::remove(path_.c_str());
  EXPECT_FALSE(watch_.Look(false).has_value());
  EXPECT_THAT(watch_.problem(), HasSubstr("there is no such file"));
  Write("[a]\nwhen = post\n");
  EXPECT_FALSE(watch_.Look(false).has_value());  // the rules are the same
  EXPECT_EQ(watch_.problem(), "");
  Write("");  // a file that was cut short on its way says nothing about rules
  EXPECT_FALSE(watch_.Look(true).has_value());
  EXPECT_NE(watch_.problem(), "");
}

}  // namespace
}  // namespace neurontrace
