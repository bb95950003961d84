// SPDX-License-Identifier: Apache-2.0
// Goal: files of a real directory are whole or not there, and no path leads out of its root.
#include "aggregator/deliver/local_volume.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "aggregator/deliver/file_time.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

namespace fs = std::filesystem;

static_assert(FileTimeNs(-1, 999'999'999) == 0);
static_assert(FileTimeNs(1, 5) == 1'000'000'005);
static_assert(FileTimeNs(18'446'744'073, 709'551'614) == UINT64_MAX - 1);
static_assert(FileTimeNs(18'446'744'073, 709'551'616) == UINT64_MAX);
static_assert(FileTimeNs(INT64_MAX, 0) == UINT64_MAX);

class LocalVolumeTest : public ::testing::TestWithParam<bool> {
 protected:
  LocalVolumeTest() {
    fs::create_directory(directory_ / "root");
    fs::create_directory(directory_ / "outside");
  }

  absl::StatusOr<std::unique_ptr<LocalVolume>> Open(const std::string& below = "x/y") {
    return LocalVolume::Open(
        {.root = root(), .below = below, .renames = GetParam(), .writer = {"c1", "n1"}});
  }
  static absl::Status Put(Volume& volume, const std::string& name, std::string_view bytes) {
    return WriteWhole(volume, name, bytes, [] { return absl::OkStatus(); });
  }
  std::string root() const { return directory_ / "root"; }
  static std::string Content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
};

TEST_P(LocalVolumeTest, WritesReadsListsAndRemoves) {
  auto volume = Open();
  ASSERT_TRUE(volume.ok()) << volume.status();
  Volume& v = **volume;
  ASSERT_TRUE(Put(v, "a/b/c.txt", "hello").ok());
  EXPECT_EQ(Content(directory_ / "root/x/y/a/b/c.txt"), "hello");
  ASSERT_TRUE(Put(v, "a/b/c.txt", "again").ok());
  ASSERT_TRUE(Put(v, "empty", "").ok());
  EXPECT_EQ(v.Read("empty", 5).value_or("x"), "");
  EXPECT_EQ(v.Read("a/b/c.txt", 5).value_or(""), "again");
  EXPECT_EQ(v.Read("a/b/c.txt", 4).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(v.Size("a/b/c.txt").value_or(0), 5u);
  EXPECT_EQ(v.Size("a/b/d.txt").status().code(), absl::StatusCode::kNotFound);
  const auto entries = v.List("a/b", 10);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 1u) << "nothing temporary";
  EXPECT_EQ((*entries)[0].name, "c.txt");
  // Whoever may write there sets any time; the file system keeps it, or the nearest that it has.
  const std::string file = directory_ / "root/x/y/a/b/c.txt";
  for (const time_t seconds : {time_t{-1'000}, time_t{20'000'000'000}}) {
    const timespec times[] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    struct stat about = {};
    ASSERT_EQ(stat(file.c_str(), &about), 0);
    EXPECT_EQ(v.List("a/b", 10)->at(0).modified_realtime_ns, FileTimeNs(about.st_mtim.tv_sec, 0));
  }
  EXPECT_TRUE(v.Remove("a/b/c.txt").ok());
  EXPECT_TRUE(v.Remove("a/b/c.txt").ok()) << "removing a missing file succeeds";
  EXPECT_TRUE(v.List("a/none", 10).value().empty());
}

TEST_P(LocalVolumeTest, UncommittedFileIsInvisible) {
  auto volume = Open();
  ASSERT_TRUE(volume.ok());
  {
    auto file = (*volume)->Create("f", {});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write("half").ok());
    EXPECT_EQ(fs::exists(directory_ / "root/x/y/f"), !GetParam());
  }
  EXPECT_TRUE(fs::is_empty(directory_ / "root/x/y"));
}

TEST_P(LocalVolumeTest, OnlyOneConcurrentCreateSucceeds) {
  auto volume = Open();
  ASSERT_TRUE(volume.ok());
  EXPECT_TRUE((*volume)->CreateOnce("claim", "first").ok());
  EXPECT_EQ((*volume)->CreateOnce("claim", "second").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Content(directory_ / "root/x/y/claim"), "first");
}

TEST_P(LocalVolumeTest, SymbolicLinksLeadNowhere) {
  auto volume = Open("");
  ASSERT_TRUE(volume.ok());
  Volume& v = **volume;
  std::ofstream(directory_ / "outside/secret") << "secret";
  fs::create_directory_symlink(directory_ / "outside", root() + "/link");
  fs::create_symlink(directory_ / "outside/secret", root() + "/file");
  for (const char* name : {"link/new", "link/secret", "link/deep/new"}) {
    EXPECT_FALSE(v.Create(name, {}).ok()) << name;
    EXPECT_FALSE(v.CreateOnce(name, "x").ok()) << name;
    EXPECT_FALSE(v.Read(name, 100).ok()) << name;
    EXPECT_FALSE(v.Size(name).ok()) << name;
    EXPECT_FALSE(v.Remove(name).ok()) << name;
  }
  EXPECT_FALSE(v.Read("file", 100).ok());
  EXPECT_FALSE(v.CreateOnce("file", "x").ok());
  // A link in the place of a file is replaced and not followed.
  EXPECT_TRUE(Put(v, "file", "mine").ok());
  EXPECT_EQ(Content(directory_ / "outside/secret"), "secret");
  EXPECT_EQ(Content(directory_ / "root/file"), "mine");
  EXPECT_FALSE(Open("link").ok());
  EXPECT_FALSE(Open("link/deep").ok());
  EXPECT_FALSE(Open("../outside").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "outside"), {}), 1);
}

TEST_P(LocalVolumeTest, TemporaryFilesOfADeadProcessAreSwept) {
  auto volume = Open("");
  ASSERT_TRUE(volume.ok());
  fs::create_directory(directory_ / "root/d");
  std::ofstream(directory_ / "root/d/.f.c1.n0.4.part") << "half";
  std::ofstream(directory_ / "root/d/.f.c2.n2.4.part") << "half";
  std::ofstream(directory_ / "root/d/f.part") << "whole";
  (*volume)->Sweep("d");
  EXPECT_FALSE(fs::exists(directory_ / "root/d/.f.c1.n0.4.part"));
  EXPECT_TRUE(fs::exists(directory_ / "root/d/.f.c2.n2.4.part"))
      << "the file of another, running export stays";
  EXPECT_TRUE(fs::exists(directory_ / "root/d/f.part")) << "somebody's";
}

TEST_P(LocalVolumeTest, ARootThatIsNotThereIsNotMade) {
  const auto volume =
      LocalVolume::Open({.root = root() + "/none", .below = "", .writer = {"c", "n"}});
  EXPECT_EQ(volume.status().code(), absl::StatusCode::kFailedPrecondition);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutRename, LocalVolumeTest, ::testing::Bool());

}  // namespace
}  // namespace neurontrace
