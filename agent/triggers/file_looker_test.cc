// SPDX-License-Identifier: Apache-2.0
// The goal: a file that appears is told once, by inotify at once or by looking. On a real
// directory; the runner is a fake's.
#include "agent/triggers/file_looker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "agent/triggers/file_watch.h"
#include "base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FileLookerTest : public testing::Test {
 protected:
  FileLookerTest() : directory_(testing::TempDir() + "/looker-XXXXXX") {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~FileLookerTest() override { std::filesystem::remove_all(directory_); }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Touch(const std::string& name) { std::ofstream(Path(name)) << "x"; }
  void Remove(const std::string& name) { std::remove(Path(name).c_str()); }
  void TakeNews() { runner_.FireWatch(looker_.inotify_fd()); }

  std::string directory_;
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  std::vector<std::string> appeared_;
  FileLooker looker_{runner_, [this](const std::string& path) { appeared_.push_back(path); }};
};

TEST_F(FileLookerTest, TellsAtOnceByInotify) {
  looker_.SetPaths({Path("a"), Path("b")});
  Touch("c");
  TakeNews();
  EXPECT_THAT(appeared_, IsEmpty());
  Touch("a");
  TakeNews();
  EXPECT_THAT(appeared_, ElementsAre(Path("a")));
  runner_.AdvanceNs(5 * FileLooker::kLookNs);
  EXPECT_THAT(appeared_, SizeIs(1));
  Remove("a");
  Touch("a");
  TakeNews();
  EXPECT_THAT(appeared_, SizeIs(2));
}

TEST_F(FileLookerTest, TellsOfAFileThatIsGoneAgainByThen) {
  looker_.SetPaths({Path("a")});
  Touch("a");
  Remove("a");
  TakeNews();
  EXPECT_THAT(appeared_, SizeIs(1));
}

TEST_F(FileLookerTest, TellsOnceWhenBothSeeIt) {
  looker_.SetPaths({Path("a")});
  Touch("a");
  runner_.AdvanceNs(FileLooker::kLookNs);
  EXPECT_THAT(appeared_, SizeIs(1));
  TakeNews();
  EXPECT_THAT(appeared_, SizeIs(1));
}

TEST_F(FileLookerTest, WhatIsThereAlreadyHasNotAppeared) {
  Touch("a");
  looker_.SetPaths({Path("a")});
  runner_.AdvanceNs(3 * FileLooker::kLookNs);
  EXPECT_THAT(appeared_, IsEmpty());
  Remove("a");
  runner_.AdvanceNs(FileLooker::kLookNs);
  Touch("a");
  runner_.AdvanceNs(FileLooker::kLookNs);
  EXPECT_THAT(appeared_, SizeIs(1));
}

TEST_F(FileLookerTest, WaitsForADirectoryAndTakesAnythingOfTheName) {
  looker_.SetPaths({Path("later/a")});
  runner_.AdvanceNs(FileLooker::kLookNs);
  std::filesystem::create_directory(Path("later"));
  std::filesystem::create_symlink("/nowhere", Path("later/a"));
  runner_.AdvanceNs(FileLooker::kLookNs);
  EXPECT_THAT(appeared_, ElementsAre(Path("later/a")));
}

TEST_F(FileLookerTest, KeepsWhatItKnowsOfPathsThatStay) {
  looker_.SetPaths({Path("a")});
  Touch("a");
  runner_.AdvanceNs(FileLooker::kLookNs);
  looker_.SetPaths({Path("a"), Path("b")});
  runner_.AdvanceNs(FileLooker::kLookNs);
  EXPECT_THAT(appeared_, SizeIs(1));
  looker_.SetPaths({});
  Touch("b");
  runner_.AdvanceNs(3 * FileLooker::kLookNs);
  TakeNews();
  EXPECT_THAT(appeared_, SizeIs(1));
}

// On its own thread, against the clock of the machine.
TEST(FileWatchTest, TellsOnTheOthersSequence) {
  std::string directory = testing::TempDir() + "/watch-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  EventLoop loop;
  std::string appeared;
  {
    FileWatch watch(loop, [&](const std::string& path) {
      appeared = path;
      loop.Quit();
    });
    watch.SetPaths({});
    watch.SetPaths({directory + "/a"});
    // Once its first look is over: until then the file would have been there from the beginning.
    const std::function<void()> touch = [&] {
      std::remove((directory + "/a").c_str());
      std::ofstream(directory + "/a") << "x";
      loop.PostDelayedTask(touch, 20'000'000);
    };
    touch();
    loop.Run();
  }
  EXPECT_EQ(appeared, directory + "/a");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace neurontrace
