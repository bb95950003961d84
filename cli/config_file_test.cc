// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class ApplyConfigTest : public testing::Test {
 protected:
  ApplyConfigTest() {
    app_.add_option("--aggregator", aggregator_)->envname("CONFIG_FILE_TEST_AGGREGATOR");
    app_.add_flag("-q,--quiet", quiet_);
    CLI::App* const capture = app_.add_subcommand("capture", "");
    capture->add_option("--core", cores_)->allow_extra_args(false);
    capture->add_option("ID", id_);
    capture->add_subcommand("start", "")->add_option("--limit", limit_);
    unsetenv("CONFIG_FILE_TEST_AGGREGATOR");
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/config_file_test_" + name;
    std::ofstream(path) << text;
    return path;
  }
  absl::Status Apply(const std::string& text) {
    user_ = Write("user", text);
    return ApplyConfig(app_, {{system_, "system file"}, {user_, "user file"}}, origins_);
  }
  void Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app_.parse(words);
  }

  CLI::App app_;
  std::string aggregator_ = "default:1";
  bool quiet_ = false;
  std::vector<std::string> cores_;
  std::string id_;
  uint32_t limit_ = 7;
  std::string system_ = Write("system", "aggregator = \"system:1\"\nquiet = true\n");
  std::string user_;
  ConfigOrigins origins_;
};

TEST_F(ApplyConfigTest, TheCommandLineWinsThenTheEnvironmentThenTheUserThenTheSystem) {
  ASSERT_TRUE(Apply("").ok());
  EXPECT_EQ(aggregator_, "system:1");
  EXPECT_TRUE(quiet_);
  ASSERT_TRUE(Apply("aggregator = \"user:1\"\nquiet = false\n").ok());
  Parse({"capture"});
  EXPECT_EQ(aggregator_, "user:1");
  EXPECT_FALSE(quiet_);
  setenv("CONFIG_FILE_TEST_AGGREGATOR", "environment:1", 1);
  Parse({"capture"});
  EXPECT_EQ(aggregator_, "environment:1");
  Parse({"--aggregator", "typed:1", "capture"});
  EXPECT_EQ(aggregator_, "typed:1");
  unsetenv("CONFIG_FILE_TEST_AGGREGATOR");
  const ConfigOrigin& origin = origins_.at(app_.get_option("--aggregator"));
  EXPECT_EQ(origin.path, user_);
  EXPECT_EQ(origin.line, 1u);
}

TEST_F(ApplyConfigTest, SectionsAreCommands) {
  ASSERT_TRUE(Apply("[capture]\ncore = \"0,2\"\n[capture.start]\nlimit = 9\n").ok());
  Parse({"capture"});
  EXPECT_EQ(cores_, std::vector<std::string>{"0,2"});
  EXPECT_EQ(limit_, 9u);
  Parse({"capture", "--core", "5"});
  EXPECT_EQ(cores_, std::vector<std::string>{"5"});
  ASSERT_TRUE(Apply("[capture]\ncore = [0, \"2-3\"]\n").ok());
  Parse({"capture"});
  EXPECT_EQ(cores_, (std::vector<std::string>{"0", "2-3"}));
}

TEST_F(ApplyConfigTest, RejectsUnknownOptions) {
  const auto error = [this](const std::string& text) { return std::string(Apply(text).message()); };
  EXPECT_THAT(error("\nother = 1"), HasSubstr(":2:1: there is no option 'other'"));
  EXPECT_THAT(error("help = true"), HasSubstr("no option 'help'"));
  EXPECT_THAT(error("[capture]\nID = 1"), HasSubstr(":2:1: 'capture' has no option 'ID'"));
  EXPECT_THAT(error("[captrue]\ncore = 1"), HasSubstr("unknown command 'captrue'"));
  EXPECT_THAT(error("[capture.begin]\nx = 1"), HasSubstr("unknown command 'capture begin'"));
  EXPECT_THAT(error("[capture.start]\nlimit = [1, 2]"), HasSubstr("limit must be a quoted string"));
  EXPECT_THAT(error("[capture start]\nlimit = 9\n"), HasSubstr("\n[capture.start]\nlimit = 9"));
  EXPECT_THAT(error("aggregator = a:1\n"), HasSubstr("aggregator = \"a:1\""));
  EXPECT_THAT(error("[capture.start]\nlimit = \"much\""), HasSubstr(":2:1: limit = \"much\": "));
}

TEST_F(ApplyConfigTest, NamedFileMustExist) {
  EXPECT_TRUE(ApplyConfig(app_, {{"/no/such/file", "user file"}}, origins_).ok());
  EXPECT_FALSE(ApplyConfig(app_, {{"/no/such/file", "user file", true}}, origins_).ok());
}

TEST_F(ApplyConfigTest, ExistingFileMustBeReadable) {
  const auto error = [this](const std::string& path, bool must_exist) {
    return std::string(ApplyConfig(app_, {{path, "user file", must_exist}}, origins_).message());
  };
  EXPECT_THAT(error(testing::TempDir(), false), HasSubstr("is not a regular file"));
  const std::string loop = testing::TempDir() + "/config_file_test_loop";
  ASSERT_TRUE(symlink(loop.c_str(), loop.c_str()) == 0 || errno == EEXIST);
  EXPECT_THAT(error(loop, false), HasSubstr("config_file_test_loop cannot be read: "));
}

TEST_F(ApplyConfigTest, AKeyWantsAValue) {
  EXPECT_THAT(std::string(Apply("quiet = true\naggregator = \"\"").message()),
              HasSubstr(":2:1: aggregator has no value"));
}

TEST(UsualConfigPlaces, FollowTheEnvironment) {
  setenv("HOME", "/root-of-x", 1);
  unsetenv("XDG_CONFIG_HOME");
  unsetenv("NEURONTRACE_CONFIG");
  ASSERT_EQ(UsualConfigPlaces().size(), 2u);
  EXPECT_EQ(UsualConfigPlaces()[0].path, "/etc/neurontrace/config");
  EXPECT_EQ(UsualConfigPlaces()[1].path, "/root-of-x/.config/neurontrace/config");
  setenv("XDG_CONFIG_HOME", "/xdg", 1);
  EXPECT_EQ(UsualConfigPlaces()[1].path, "/xdg/neurontrace/config");
  setenv("NEURONTRACE_CONFIG", "/named", 1);
  EXPECT_EQ(UsualConfigPlaces()[1].path, "/named");
  EXPECT_TRUE(UsualConfigPlaces()[1].must_exist);
  setenv("NEURONTRACE_CONFIG", "", 1);
  EXPECT_EQ(UsualConfigPlaces().size(), 1u);
  unsetenv("NEURONTRACE_CONFIG");
  unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace neurontrace::cli
