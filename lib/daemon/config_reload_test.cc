// SPDX-License-Identifier: Apache-2.0
// The goal: a changed file is applied as a whole or not at all, and each difference is reported. On
// a real file.
#include "lib/daemon/config_reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "lib/base/status.h"
#include "lib/daemon/program_log.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigReloadTest : public testing::Test {
 protected:
  ~ConfigReloadTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  // A file holds two digits: of "quick", which is taken at once, and of "slow", which is not.
  absl::StatusOr<EffectiveOptions> Read() {
    std::string text;
    std::ifstream(path_) >> text;
    ++reads_;
    if (text.empty() || text.find('x') != std::string::npos) {
      return InvalidArgument("'{}' is no digit", text);
    }
    last_ = {{"quick", text.substr(0, 1)}, {"slow", text.size() > 1 ? text.substr(1) : "0"}};
    return last_;
  }
  absl::Status Apply() {
    if (last_["quick"] == "9") return FailedPrecondition("quick: 9 cannot be had");
    applied_ = last_["quick"];
    return absl::OkStatus();
  }
  std::string PollAndReadLog(bool anyway = false) {
    testing::internal::CaptureStderr();
    reload_.Poll(anyway);
    return testing::internal::GetCapturedStderr();
  }

  const std::string path_ = testing::TempDir() + "/neurontrace-config-" + std::to_string(getpid());
  const bool is_there_ = (Write("1"), true);  // before what watches it is made
  SystemClock clock_;
  EffectiveOptions last_;
  std::string applied_ = "1";
  int reads_ = 0;
  ProgramLog log_{"test"};
  ConfigReload reload_{path_,
                       {{"quick", "1"}, {"slow", "0"}},
                       {"quick"},
                       {.read = [this] { return Read(); }, .apply = [this] { return Apply(); }},
                       clock_};
};

TEST_F(ConfigReloadTest, AppliesReloadableOptionsAndReportsOthers) {
  Write("27");
  const std::string reported = PollAndReadLog();
  EXPECT_THAT(reported, AllOf(HasSubstr("quick is now '2' (was '1')"),
                              HasSubstr("slow = '7' needs a restart; '0' stays in effect")));
  EXPECT_EQ(applied_, "2");
  EXPECT_EQ(reload_.in_force(), (EffectiveOptions{{"quick", "2"}, {"slow", "0"}}));
  EXPECT_THAT(reload_.state().after_restart, ElementsAre(OptionChange{"slow", "0", "7"}));
  EXPECT_EQ(reload_.state().taken, 1u);
  EXPECT_EQ(PollAndReadLog(true), "") << "nothing new is reported twice";
  EXPECT_EQ(reload_.state().taken, 1u);
}

TEST_F(ConfigReloadTest, InvalidFileChangesNothingAndIsReportedOnce) {
  Write("x");
  EXPECT_THAT(PollAndReadLog(), AllOf(HasSubstr(path_ + ": 'x' is no digit"),
                                      HasSubstr("the previous values stay in effect")));
  EXPECT_EQ(PollAndReadLog(true), "");
  EXPECT_EQ(applied_, "1");
  EXPECT_EQ(reload_.state().refused, 1u);
  EXPECT_EQ(reload_.state().problem, "'x' is no digit");
  Write("1");
  EXPECT_THAT(PollAndReadLog(), HasSubstr("it matches the values in effect"));
  EXPECT_EQ(reload_.state().problem, "");
}

TEST_F(ConfigReloadTest, UnappliedOptionsAreNotInEffect) {
  Write("9");
  EXPECT_THAT(PollAndReadLog(), HasSubstr("quick: 9 cannot be had"));
  EXPECT_EQ(reload_.in_force().at("quick"), "1");
  EXPECT_EQ(reload_.state().refused, 1u);
}

TEST_F(ConfigReloadTest, MissingFileIsInvalid) {
  std::remove(path_.c_str());
  EXPECT_THAT(PollAndReadLog(), HasSubstr("is no digit"));
  EXPECT_EQ(applied_, "1");
}

TEST_F(ConfigReloadTest, WithoutAFileThereIsNothingToRead) {
  ConfigReload none("", {}, {}, {.read = [this] { return Read(); }, .apply = nullptr}, clock_);
  none.Poll(true);
  EXPECT_EQ(reads_, 0);
  EXPECT_THAT(none.state().after_restart, IsEmpty());
}

}  // namespace
}  // namespace neurontrace
