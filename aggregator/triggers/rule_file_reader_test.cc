// SPDX-License-Identifier: Apache-2.0
// The goal: what the file says reaches the sequence, from a thread that is not the sequence. On a
// real file, thread and loop.
#include "aggregator/triggers/rule_file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <future>

#include "base/event_loop.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class RuleFileReaderTest : public testing::Test {
 protected:
  RuleFileReaderTest() : thread_([this] { loop_.Run(); }) {}
  ~RuleFileReaderTest() override {
    loop_.Quit();
    thread_.join();
    std::remove(path_.c_str());
  }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  const std::string path_ = testing::TempDir() + "/neurontrace-reader-" + std::to_string(getpid());
  SystemClock clock_;
  std::promise<RuleFileReader::News> good_;
  std::promise<RuleFileReader::News> bad_;
  EventLoop loop_;
  std::thread thread_;
};

TEST_F(RuleFileReaderTest, TellsOnTheSequenceWhatHasChanged) {
  Write("[a]\nwhen = post\n");
  RuleFileReader reader(path_, clock_);
  ASSERT_TRUE(reader.Load().ok());
  reader.Begin(loop_, [this](RuleFileReader::News news) {
    EXPECT_TRUE(loop_.RunsTasksOnCurrentThread());
    (news.rules ? good_ : bad_).set_value(std::move(news));
  });
  Write("[b]\nwhen = post\n");
  reader.LookNow();
  const RuleFileReader::News first = good_.get_future().get();
  EXPECT_EQ((*first.rules)[0].name, "b");
  EXPECT_EQ(first.problem, "");
  Write("[b]\nwhen = posts\n");
  reader.LookNow();
  EXPECT_THAT(bad_.get_future().get().problem, HasSubstr("when = posts"));
}

TEST_F(RuleFileReaderTest, MayEndBeforeItBegins) {
  RuleFileReader reader(path_, clock_);
  EXPECT_FALSE(reader.Load().ok());
  reader.LookNow();
}

}  // namespace
}  // namespace neurontrace
