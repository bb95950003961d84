// SPDX-License-Identifier: Apache-2.0
// Goal: what a real directory has to do for a file that no other test can see: when it syncs what,
// how it fails where a volume has no second names, and what two writers of one name leave. Calls of
// the system go through this file.
#include "aggregator/deliver/local_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "aggregator/deliver/local_volume.h"
#include "lib/base/temporary_directory.h"

namespace {
int link_error = 0;
std::set<ino_t> synced;
int data_syncs = 0;
}  // namespace
extern "C" int fsync(int fd) {
  struct stat about = {};
  if (fstat(fd, &about) == 0) synced.insert(about.st_ino);
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  ++data_syncs;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
extern "C" int linkat(int from, const char* old_name, int to, const char* name,
                      int flags) noexcept {
  if (link_error == 0) {
    return static_cast<int>(syscall(SYS_linkat, from, old_name, to, name, flags));
  }
  errno = link_error;
  return -1;
}

namespace neurontrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LocalFileTest : public ::testing::Test {
 protected:
  LocalFileTest() {
    synced.clear();
    data_syncs = 0;
  }
  ~LocalFileTest() override { link_error = 0; }

  std::unique_ptr<LocalVolume> Open(bool renames, const std::string& mark = "c1") {
    return *LocalVolume::Open(
        {.root = root_.path(), .below = "x/y", .renames = renames, .writer = {mark, "n"}});
  }
  bool IsSynced(const std::string& name) const {
    struct stat about = {};
    return stat((root_ / name).c_str(), &about) == 0 && synced.contains(about.st_ino);
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(root_ / "x/y" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static absl::Status Put(Volume& volume, const std::string& name, std::string_view bytes) {
    return WriteWhole(volume, name, bytes, [] { return absl::OkStatus(); });
  }

  TemporaryDirectory root_;
};

TEST_F(LocalFileTest, TheParentsOfNewDirectoriesAreSynced) {
  const auto volume = Open(true);
  EXPECT_TRUE(IsSynced("")) << "of x";
  EXPECT_TRUE(IsSynced("x")) << "of y";
  EXPECT_FALSE(IsSynced("x/y"));
  ASSERT_TRUE(volume->Create("a/b/f", {}).ok());
  EXPECT_TRUE(IsSynced("x/y"));
  EXPECT_TRUE(IsSynced("x/y/a"));
  EXPECT_FALSE(IsSynced("x/y/a/b"));
}

TEST_F(LocalFileTest, SyncsDirectoryOfRemovedFile) {
  const auto volume = Open(true);
  ASSERT_TRUE(Put(*volume, "a/f", "bytes").ok());
  synced.clear();
  ASSERT_TRUE(volume->Remove("a/f").ok());
  EXPECT_TRUE(IsSynced("x/y/a"));
}

TEST_F(LocalFileTest, ALargeFileIsSyncedWhileItIsWritten) {
  for (const bool renames : {true, false}) {
    const auto volume = Open(renames);
    const auto file = volume->Create("large", {});
    ASSERT_TRUE(file.ok());
    const std::string piece(8u << 20, 'x');
    data_syncs = 0;
    for (int i = 0; i < 17; ++i) ASSERT_TRUE((*file)->Write(piece).ok());
    EXPECT_EQ(data_syncs, 2);
  }
}

TEST_F(LocalFileTest, SuggestsOptionWithoutHardLinks) {
  const auto volume = Open(true);
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {
    link_error = error;
    const absl::Status status = volume->CreateOnce("claim.1.json", "mine");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--export-root-without-rename"));
  }
  EXPECT_TRUE(fs::is_empty(root_ / "x/y"));
  EXPECT_TRUE(Open(false)->CreateOnce("claim.1.json", "mine").ok());
}

// On volumes without rename two captures can have files of one name.
TEST_F(LocalFileTest, KeepsExistingFileWithSameBytes) {
  const auto first = Open(false);
  ASSERT_TRUE(Put(*first, "f", "content").ok());
  const auto second = Open(false, "c2");
  {
    const auto file = second->Create("f", {});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write("cont").ok());
    EXPECT_EQ(Content("f"), "content");
  }
  EXPECT_EQ(Content("f"), "content") << "also after the failure";
  ASSERT_TRUE(Put(*second, "f", "content").ok());
  EXPECT_EQ(Content("f"), "content");
  for (const char* other : {"contrary", "content and more", "cont", ""}) {
    ASSERT_TRUE(Put(*second, "f", other).ok());
    EXPECT_EQ(Content("f"), other);
  }
}

TEST_F(LocalFileTest, WriterWhoseFileIsRemovedFails) {
  const auto first = Open(false);
  const auto second = Open(false, "c2");
  auto mine = first->Create("f", {});
  ASSERT_TRUE(mine.ok());
  ASSERT_TRUE((*mine)->Write("content").ok());
  auto theirs = second->Create("f", {});
  ASSERT_TRUE(theirs.ok());
  ASSERT_TRUE((*theirs)->Write("contrary").ok());
  EXPECT_EQ((*mine)->Sync().code(), absl::StatusCode::kUnavailable);
  mine->reset();
  EXPECT_EQ(Content("f"), "contrary") << "the file belongs to another writer";
  ASSERT_TRUE((*theirs)->Sync().ok());
  EXPECT_TRUE((*theirs)->Commit().ok());
}

}  // namespace
}  // namespace neurontrace
