// SPDX-License-Identifier: Apache-2.0
// Goal: what an export left is gone on with by an export of the same and by no other, and nothing
// that no export made is touched.
#include "cli/export_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

std::vector<std::string> synced_paths;

}  // namespace

// In place of the C library's: notes what is synced.
extern "C" int fsync(int fd) {
  synced_paths.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Not;

class ExportPartTest : public testing::Test {
 protected:
  ExportPartTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  std::unique_ptr<ExportPart> Open(const std::string& request, bool is_restart = false) const {
    auto part = ExportPart::Open(
        {.path = path_, .capture_id = "01JD", .request = request, .is_restart = is_restart});
    EXPECT_TRUE(part.ok()) << part.status();
    return *std::move(part);
  }
  // Leaves something there for the same request.
  void LeaveSome(const std::string& request) const {
    const auto part = Open(request);
    Write(part->path(), "some");
    part->RecordFileName("a.json");
    part->Leave();
  }
  static void Write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string Read(const std::filesystem::path& path) {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  const std::string root_ = testing::TempDir() + "/export_part";
  const std::string path_ = root_ + "/trace";
  const std::string place_ = path_ + ".part";
  const std::string note_ = path_ + ".part.request";
};

TEST_F(ExportPartTest, IsTakenByTheSameRequest) {
  LeaveSome("same");
  EXPECT_EQ(Entries(), 2u);
  const auto part = Open("same");
  EXPECT_EQ(part->path(), place_);
  EXPECT_EQ(part->file_name(), "a.json");
  EXPECT_EQ(Read(place_), "some");
  ASSERT_TRUE(part->TakeName().ok());
  EXPECT_EQ(Read(path_), "some");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportPartTest, IsOnTheDiskBeforeAndWithItsName) {
  const std::string root = std::filesystem::canonical(root_);
  auto part = Open("same");
  Write(part->path(), "whole");
  synced_paths.clear();
  ASSERT_TRUE(part->TakeName().ok());
  EXPECT_THAT(synced_paths, ElementsAre(root + "/trace.part", root));
  std::filesystem::remove(path_);
  part = ExportPart::Open({.path = path_, .is_directory = true, .request = "same"}).value();
  std::filesystem::create_directory(part->path() + "/below");
  Write(part->path() + "/below/table", "whole");
  synced_paths.clear();
  ASSERT_TRUE(part->TakeName().ok());
  EXPECT_THAT(synced_paths,
              ElementsAre(root + "/trace.part/below", root + "/trace.part/below/table",
                          root + "/trace.part", root));
}

TEST_F(ExportPartTest, RemovesPartOfOtherRequest) {
  LeaveSome("one");
  {
    const auto part = Open("two");
    EXPECT_EQ(part->path(), place_);
    EXPECT_EQ(part->file_name(), "");
    EXPECT_FALSE(std::filesystem::exists(place_));
  }
  EXPECT_EQ(Entries(), 0u);
  LeaveSome("one");
  EXPECT_FALSE(Open("one", true)->file_name().size());
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ExportPartTest, AFileIsNoDirectoryAndALinkIsNeither) {
  LeaveSome("same");
  auto part = ExportPart::Open({.path = path_, .is_directory = true, .request = "same"});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(std::filesystem::is_directory(place_) && std::filesystem::is_empty(place_));
  part->reset();
  LeaveSome("same");
  Write(root_ + "/other", "somebody's");
  std::filesystem::remove(place_);
  std::filesystem::create_symlink(root_ + "/other", place_);
  EXPECT_EQ(Open("same")->file_name(), "");
  EXPECT_EQ(Read(root_ + "/other"), "somebody's");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportPartTest, SecondExportUsesSeparatePath) {
  const auto first = Open("same");
  Write(first->path(), "first");
  {
    const auto second = Open("same");
    EXPECT_FALSE(second->can_be_left());
    EXPECT_THAT(second->path(), Not(EndsWith("/trace.part")));
    Write(second->path(), "second");
    second->Leave();  // cannot be
  }
  EXPECT_EQ(Read(place_), "first");
  EXPECT_EQ(Entries(), 2u);
  // Once it is free, it can be locked again.
  first->Leave();
}

TEST_F(ExportPartTest, LeavesForeignFilesAlone) {
  Write(place_, "a person's");
  EXPECT_FALSE(Open("same")->can_be_left());
  EXPECT_EQ(Read(place_), "a person's");
  EXPECT_EQ(Entries(), 1u);
  Write(note_, "a person's note");
  EXPECT_FALSE(Open("same")->can_be_left());
  EXPECT_EQ(Read(note_), "a person's note");
  EXPECT_EQ(Read(place_), "a person's");
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(ExportPartTest, IgnoresTruncatedNote) {
  LeaveSome("same");
  const std::string note = Read(note_);
  for (size_t size = 0; size < note.size(); ++size) {
    Write(place_, "some");
    Write(note_, note.substr(0, size));
    const auto part = Open("same");
    // Up to the first line's end it could be anybody's, but for an empty one.
    if (!part->can_be_left()) {
      EXPECT_LT(size, note.find('\n') + 1);
      EXPECT_EQ(Read(place_), "some");
    } else {
      EXPECT_EQ(part->file_name(), "") << size;
      const bool knows_request = note.substr(0, size).find("request same\n") != std::string::npos;
      EXPECT_EQ(std::filesystem::exists(place_), knows_request) << size;
    }
    part->Leave();
  }
}

TEST_F(ExportPartTest, WithoutARequestNothingIsLeft) {
  LeaveSome("same");
  {
    const auto part = Open("");
    Write(part->path(), "x");
    EXPECT_FALSE(part->can_be_left());
  }
  EXPECT_EQ(Entries(), 2u) << "and what is there is not looked at";
}

}  // namespace
}  // namespace neurontrace::cli
