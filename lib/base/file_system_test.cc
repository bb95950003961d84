// SPDX-License-Identifier: Apache-2.0
// What both file systems promise, and what the fake one does at a crash and when a test makes it
// fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "lib/base/fake_file_system.h"
#include "lib/base/file_system.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Operation = FakeFileSystem::Operation;

// The same expectations of the real disk and of the one that plays it.
class AnyFileSystem : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      char name[] = "/tmp/file_system_test.XXXXXX";
      ASSERT_NE(mkdtemp(name), nullptr);
      root_ = name;
      disk_ = std::make_unique<SystemFileSystem>();
    } else {
      root_ = "/root";
      disk_ = std::make_unique<FakeFileSystem>();
    }
    ASSERT_TRUE(disk_->MakeDirectory(root_ + "/d/e").ok());
  }
  void TearDown() override {
    if (GetParam()) std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, std::string_view bytes) {
    auto file = disk_->Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }

  std::string root_;
  std::unique_ptr<FileSystem> disk_;
};

TEST_P(AnyFileSystem, ReadsAppendedBytes) {
  const std::string path = root_ + "/d/x";
  auto file = disk_->Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("abc").ok());
  ASSERT_TRUE((*file)->Append("defg").ok());
  EXPECT_EQ(*(*file)->Read(2, 3), "cde") << "of a file that is being written";
  auto again = disk_->OpenForReading(path);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*(*again)->Size(), 7u);
  EXPECT_EQ(*(*again)->Read(5, 100), "fg");
  EXPECT_EQ(*(*again)->Read(7, 1), "");
  EXPECT_EQ(*(*again)->Read(~uint64_t{0}, ~size_t{0}), "");
  EXPECT_TRUE(disk_->SyncDirectory(root_ + "/d").ok());
}

TEST_P(AnyFileSystem, CreateTruncatesExistingFile) {
  Write(root_ + "/d/x", "long");
  Write(root_ + "/d/x", "s");
  EXPECT_EQ(*(*disk_->OpenForReading(root_ + "/d/x"))->Read(0, 9), "s");
}

TEST_P(AnyFileSystem, ListsByNameAndNoMoreThanAsked) {
  Write(root_ + "/d/b", "12");
  Write(root_ + "/d/a", "");
  EXPECT_THAT(*disk_->List(root_ + "/d", 3),
              ElementsAre(FileSystem::Entry{"a", false, 0}, FileSystem::Entry{"b", false, 2},
                          FileSystem::Entry{"e", true, 0}));
  EXPECT_EQ(disk_->List(root_ + "/d", 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(disk_->List(root_ + "/nothing", 2).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(AnyFileSystem, RenameTakesThePlaceOfAnother) {
  Write(root_ + "/d/a", "new");
  Write(root_ + "/d/b", "old");
  ASSERT_TRUE(disk_->Rename(root_ + "/d/a", root_ + "/d/b").ok());
  EXPECT_EQ(*(*disk_->OpenForReading(root_ + "/d/b"))->Read(0, 9), "new");
  EXPECT_EQ(disk_->OpenForReading(root_ + "/d/a").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(AnyFileSystem, ErrorsNameThePath) {
  const auto opened = disk_->OpenForReading(root_ + "/d/none");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("d/none"));
  EXPECT_EQ(disk_->Create(root_ + "/none/x").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk_->Remove(root_ + "/none").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk_->Remove(root_ + "/d").code(), absl::StatusCode::kAlreadyExists) << "not empty";
  EXPECT_TRUE(disk_->Remove(root_ + "/d/e").ok());
  EXPECT_TRUE(disk_->Remove(root_ + "/d").ok());
  EXPECT_TRUE(disk_->MakeDirectory(root_ + "/d").ok());
  EXPECT_TRUE(disk_->MakeDirectory(root_ + "/d").ok()) << "there already";
}

TEST_P(AnyFileSystem, OnlyOneHoldsTheLock) {
  auto lock = disk_->TakeLock(root_ + "/d/lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(disk_->TakeLock(root_ + "/d/lock").status().code(),
            absl::StatusCode::kFailedPrecondition);
  lock->reset();
  EXPECT_TRUE(disk_->TakeLock(root_ + "/d/lock").ok());
}

// Who may write to the directory could otherwise block this process for ever, or have it write
// elsewhere.
TEST(SystemFileSystemTest, OpensNothingButRegularFiles) {
  char name[] = "/tmp/file_system_test.XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string root = name;
  ASSERT_EQ(mkfifo((root + "/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(root + "/elsewhere", root + "/link");
  std::filesystem::create_symlink("/dev/zero", root + "/device");
  std::filesystem::create_directory(root + "/directory");
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const std::string socket_path = root + "/socket";
  std::copy(socket_path.begin(), socket_path.end(), address.sun_path);
  ASSERT_EQ(bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  SystemFileSystem disk;
  for (const char* const file : {"/fifo", "/link", "/device", "/socket"}) {
    SCOPED_TRACE(file);
    for (const absl::Status& status :
         {disk.OpenForReading(root + file).status(), disk.Create(root + file).status(),
          disk.TakeLock(root + file).status()}) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(root + file));
    }
  }
  EXPECT_FALSE(disk.OpenForReading(root + "/directory").ok());
  EXPECT_FALSE(std::filesystem::exists(root + "/elsewhere"));
  std::filesystem::remove_all(root);
}

INSTANTIATE_TEST_SUITE_P(Disks, AnyFileSystem, ::testing::Values(false, true),
                         [](const auto& disk) { return disk.param ? "System" : "Fake"; });

class FakeDisk : public ::testing::Test {
 protected:
  FakeDisk() {
    EXPECT_TRUE(disk_.MakeDirectory("/s").ok());
    EXPECT_TRUE(disk_.SyncDirectory("/").ok());
  }
  FakeFileSystem disk_{7};
};

TEST_F(FakeDisk, CrashKeepsSyncedDataAndAnyPartOfRest) {
  std::set<size_t> lengths;
  bool damaged = false;
  for (int round = 0; round < 200; ++round) {
    auto file = disk_.Create("/s/x");
    ASSERT_TRUE((*file)->Append("durable").ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE(disk_.SyncDirectory("/s").ok());
    ASSERT_TRUE((*file)->Append("xyz").ok());
    disk_.Crash();
    const std::string left = disk_.Contents("/s/x").value_or("");
    ASSERT_TRUE(left.starts_with("durable")) << left;
    ASSERT_LE(left.size(), 10u);
    lengths.insert(left.size());
    damaged = damaged || left != std::string("durablexyz").substr(0, left.size());
    EXPECT_EQ((*file)->Append("more").code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_THAT(lengths, ElementsAre(7, 8, 9, 10));
  EXPECT_TRUE(damaged);
}

TEST_F(FakeDisk, CrashKeepsTheFirstOfADirectorysChanges) {
  std::set<std::string> seen;
  for (int round = 0; round < 200; ++round) {
    disk_.SetContents("/s/a", "1");
    ASSERT_TRUE(disk_.Rename("/s/a", "/s/b").ok());
    ASSERT_TRUE(disk_.Rename("/s/b", "/s/c").ok());
    disk_.Crash();
    std::string names;
    for (const std::string& path : disk_.Paths()) names += path;
    seen.insert(names);
    for (const std::string& path : disk_.Paths()) ASSERT_TRUE(disk_.Remove(path).ok());
    ASSERT_TRUE(disk_.SyncDirectory("/s").ok());
  }
  EXPECT_THAT(seen, ElementsAre("/s/a", "/s/b", "/s/c"));
}

TEST_F(FakeDisk, FileInADirectoryThatWasNotSyncedMayBeGone) {
  bool gone = false;
  bool there = false;
  for (int round = 0; round < 50; ++round) {
    const std::string directory = "/s/" + std::to_string(round);
    ASSERT_TRUE(disk_.MakeDirectory(directory).ok());
    disk_.SetContents(directory + "/x", "1");
    disk_.Crash();
    (disk_.Contents(directory + "/x") ? there : gone) = true;
  }
  EXPECT_TRUE(gone);
  EXPECT_TRUE(there);
}

TEST_F(FakeDisk, PowerOffTearsTheWriteItMeets) {
  std::set<size_t> lengths;
  for (int round = 0; round < 100; ++round) {
    auto file = disk_.Create("/s/x");
    ASSERT_TRUE(disk_.SyncDirectory("/s").ok());
    disk_.PowerOffAt(1);
    EXPECT_EQ((*file)->Append("abc").code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(disk_.powered_off());
    EXPECT_EQ((*file)->Sync().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(disk_.List("/s", 9).status().code(), absl::StatusCode::kUnavailable);
    disk_.Crash();
    EXPECT_FALSE(disk_.powered_off());
    lengths.insert(disk_.Contents("/s/x")->size());
  }
  EXPECT_THAT(lengths, ElementsAre(0, 1, 2, 3));
}

TEST_F(FakeDisk, SyncThatFailedIsNotMadeGoodByALaterOne) {
  bool lost = false;
  for (int round = 0; round < 50; ++round) {
    auto file = disk_.Create("/s/x");
    ASSERT_TRUE(disk_.SyncDirectory("/s").ok());
    ASSERT_TRUE((*file)->Append("abc").ok());
    disk_.Fail(Operation::kSync, Unavailable("input/output error"), 1);
    EXPECT_FALSE((*file)->Sync().ok());
    EXPECT_TRUE((*file)->Sync().ok());
    disk_.Crash();
    lost = lost || disk_.Contents("/s/x") != "abc";
  }
  EXPECT_TRUE(lost);
}

TEST_F(FakeDisk, FullDiskWritesPartially) {
  disk_.SetCapacity(5);
  auto file = disk_.Create("/s/x");
  EXPECT_TRUE((*file)->Append("abc").ok());
  EXPECT_EQ((*file)->Append("defg").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(disk_.Contents("/s/x"), "abcde");
  ASSERT_TRUE(disk_.Remove("/s/x").ok());
  EXPECT_EQ(disk_.bytes(), 0u);
}

TEST_F(FakeDisk, ReadOnlyDiskCanBeRead) {
  disk_.SetContents("/s/x", "abc");
  disk_.SetReadOnly(true);
  EXPECT_EQ(*(*disk_.OpenForReading("/s/x"))->Read(0, 9), "abc");
  EXPECT_EQ(disk_.Create("/s/y").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(disk_.Remove("/s/x").code(), absl::StatusCode::kFailedPrecondition);
  disk_.Heal();
  EXPECT_TRUE(disk_.Remove("/s/x").ok());
}

TEST_F(FakeDisk, EndOfTheProcessAloneLosesNothing) {
  disk_.SetCrashLosesNothing(true);
  auto file = disk_.Create("/s/x");
  ASSERT_TRUE((*file)->Append("abc").ok());
  auto lock = disk_.TakeLock("/s/lock");
  disk_.Crash();
  EXPECT_EQ(disk_.Contents("/s/x"), "abc");
  auto again = disk_.TakeLock("/s/lock");
  EXPECT_TRUE(again.ok());
  lock->reset();  // of before: frees nothing now
  EXPECT_FALSE(disk_.TakeLock("/s/lock").ok());
}

TEST_F(FakeDisk, BitsFlip) {
  disk_.SetContents("/s/x", std::string("a", 1));
  EXPECT_TRUE(disk_.FlipBit("/s/x", 1));
  EXPECT_EQ(disk_.Contents("/s/x"), "c");
  EXPECT_FALSE(disk_.FlipBit("/s/x", 8));
  EXPECT_THAT(disk_.Paths(), ElementsAre("/s/x"));
  EXPECT_THAT(FakeFileSystem().Paths(), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
