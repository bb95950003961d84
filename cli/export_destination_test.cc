// SPDX-License-Identifier: Apache-2.0
// Goal: what has the real name is whole, and what an aggregator sends stays where it belongs.
#include "cli/export_destination.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/base/sha256.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class ExportDestinationTest : public testing::Test {
 protected:
  ExportDestinationTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  static std::string Read(const std::filesystem::path& path) {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }
  auto OpenFile() { return OpenDestination({.path = path_, .request = "r"}); }
  static auto OpenDirectory(const std::string& path) {
    return OpenDestination({.path = path, .is_directory = true, .request = "r"});
  }
  static void WriteNew(ExportDestination& destination) {
    ASSERT_TRUE(destination.Begin("a", 0).ok());
    ASSERT_TRUE(destination.Write(0, "new").ok());
    ASSERT_TRUE(destination.End(0).ok());
    const absl::Status kept = destination.Keep();
    ASSERT_TRUE(kept.ok()) << kept;
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  const std::string root_ = testing::TempDir() + "/export_destination";
  const std::string path_ = root_ + "/trace";
};

TEST_F(ExportDestinationTest, AFileHasItsNameOnceItIsWhole) {
  std::ofstream(path_) << "what was there";
  {
    auto file = OpenFile();
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Begin("system_profile.pftrace", 0).ok());
    ASSERT_TRUE((*file)->Write(0, "new").ok());
    EXPECT_THAT((*file)->Keep().message(), HasSubstr("did not finish"));
    EXPECT_EQ(Read(path_), "what was there");
    ASSERT_TRUE((*file)->End(0).ok());
    ASSERT_TRUE((*file)->Keep().ok());
    EXPECT_EQ(Read(path_), "new");
  }
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportDestinationTest, ALinkStaysAndWhatItLeadsToIsReplaced) {
  const std::string elsewhere = root_ + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::ofstream(elsewhere + "/real") << "what was there";
  std::filesystem::permissions(elsewhere + "/real", std::filesystem::perms(0640));
  std::filesystem::create_symlink("elsewhere/real", root_ + "/first");
  std::filesystem::create_symlink(root_ + "/first", path_);
  std::filesystem::create_symlink("elsewhere/absent", root_ + "/dangling");
  for (const std::string& path : {path_, root_ + "/dangling"}) {
    auto file = OpenDestination({.path = path, .request = "r"});
    ASSERT_TRUE(file.ok()) << file.status();
    WriteNew(**file);
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    EXPECT_EQ(Read(path), "new");
  }
  EXPECT_TRUE(std::filesystem::is_symlink(root_ + "/first"));
  EXPECT_EQ(std::filesystem::status(elsewhere + "/real").permissions(),
            std::filesystem::perms(0640));
  EXPECT_EQ(Read(elsewhere + "/absent"), "new");
  std::filesystem::create_symlink("elsewhere/directory", root_ + "/to_directory");
  auto directory = OpenDirectory(root_ + "/to_directory");
  ASSERT_TRUE(directory.ok()) << directory.status();
  WriteNew(**directory);
  EXPECT_TRUE(std::filesystem::is_symlink(root_ + "/to_directory"));
  EXPECT_EQ(Read(elsewhere + "/directory/a"), "new");
}

TEST_F(ExportDestinationTest, WritesDirectlyIntoNonFiles) {
  // A device, as /dev/null is, and still one afterwards.
  const std::string null = root_ + "/null";
  if (mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    auto device = OpenDestination({.path = null, .request = "r"});
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->part(), nullptr);
    WriteNew(**device);
    EXPECT_TRUE(std::filesystem::is_character_file(null));
  }
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const UniqueFd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  auto pipe = OpenFile();
  ASSERT_TRUE(pipe.ok()) << pipe.status();
  WriteNew(**pipe);
  char bytes[8] = {};
  EXPECT_EQ(read(reader.get(), bytes, sizeof bytes), 3);
  EXPECT_STREQ(bytes, "new");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(ExportDestinationTest, InheritedDescriptorContinuesAtItsOffset) {
  const UniqueFd file(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(file.get(), "before ", 7), 7);
  for (const char* const place : {"/dev/fd/", "/proc/self/fd/"}) {
    auto stream = OpenDestination({.path = place + std::to_string(file.get()), .request = "r"});
    ASSERT_TRUE(stream.ok()) << stream.status();
    WriteNew(**stream);
  }
  ASSERT_EQ(write(file.get(), " after", 6), 6);
  EXPECT_EQ(Read(path_), "before newnew after");
  EXPECT_EQ(Entries(), 1u);
  EXPECT_FALSE(OpenDestination({.path = "/dev/fd/999", .request = "r"}).ok());
}

TEST_F(ExportDestinationTest, AFullDeviceIsAnError) {
  auto full = OpenDestination({.path = "/dev/full", .request = "r"});
  ASSERT_TRUE(full.ok()) << full.status();
  ASSERT_TRUE((*full)->Begin("a", 0).ok());
  ASSERT_TRUE((*full)->Write(0, "new").ok());
  ASSERT_TRUE((*full)->End(0).ok());
  EXPECT_THAT((*full)->Keep().message(), HasSubstr("/dev/full: No space left"));
}

TEST_F(ExportDestinationTest, AFileTakesOneFileAndItsBytes) {
  auto file = OpenFile();
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE((*file)->Write(0, "early").ok());
  ASSERT_TRUE((*file)->Begin("a", 0).ok());
  EXPECT_FALSE((*file)->Write(1, "of another").ok());
  EXPECT_FALSE((*file)->Begin("b", 0).ok());
  file->reset();
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ExportDestinationTest, AFileIsNotPutInThePlaceOfADirectory) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(OpenFile().status().message(), HasSubstr("is a directory"));
}

TEST_F(ExportDestinationTest, ADirectoryHasItsNameOnceItIsWhole) {
  {
    auto directory = OpenDirectory(path_ + "/");
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_TRUE((*directory)->Begin("part/a.bin", 0).ok());
    ASSERT_TRUE((*directory)->Begin("b.bin", 0).ok());
    ASSERT_TRUE((*directory)->Write(1, "bb").ok());
    ASSERT_TRUE((*directory)->Write(0, "aa").ok());
    ASSERT_TRUE((*directory)->End(0).ok());
    EXPECT_FALSE((*directory)->Write(0, "after its end").ok());
    EXPECT_THAT((*directory)->Keep().message(), HasSubstr("b.bin"));
    ASSERT_TRUE((*directory)->End(1).ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_TRUE((*directory)->Keep().ok());
  }
  EXPECT_EQ(Read(path_ + "/part/a.bin"), "aa");
  EXPECT_EQ(Read(path_ + "/b.bin"), "bb");
  EXPECT_EQ(Entries(), 1u);
  EXPECT_THAT(OpenDirectory(path_).status().message(), HasSubstr("choose another"));
}

TEST_F(ExportDestinationTest, NamesStayBelowTheDirectory) {
  auto directory = OpenDirectory(path_);
  ASSERT_TRUE(directory.ok());
  for (const char* name : {"", "/etc/passwd", "../up", "a/../../up", "a/", "."}) {
    EXPECT_EQ((*directory)->Begin(name, 0).code(), absl::StatusCode::kDataLoss) << name;
  }
  ASSERT_TRUE((*directory)->Begin("a", 0).ok());
  EXPECT_FALSE((*directory)->Begin("a", 0).ok()) << "twice";
  directory->reset();
  EXPECT_EQ(Entries(), 0u);
  EXPECT_EQ(OpenDirectory("-").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExportDestinationTest, FileResumesAfterExistingBytes) {
  {
    auto file = OpenFile();
    ASSERT_TRUE((*file)->Resume()->empty());
    ASSERT_TRUE((*file)->Begin("its.name", 0).ok());
    ASSERT_TRUE((*file)->Write(0, "begin").ok());
    (*file)->part()->Leave();
  }
  EXPECT_EQ(Entries(), 2u);
  auto file = OpenFile();
  const auto held = (*file)->Resume();
  ASSERT_EQ(held->size(), 1u);
  EXPECT_EQ(held->front().name(), "its.name");
  EXPECT_EQ(held->front().bytes(), 5u);
  Sha256 hash;
  hash.Update("begin");
  EXPECT_EQ(held->front().sha256(), hash.Finish());
  // Of another length than what is there it cannot be.
  EXPECT_EQ((*file)->Begin("its.name", 4).code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE((*file)->Resume().ok());
  ASSERT_TRUE((*file)->Begin("its.name", 5).ok());
  ASSERT_TRUE((*file)->Write(0, " end").ok());
  ASSERT_TRUE((*file)->End(0).ok());
  ASSERT_TRUE((*file)->Keep().ok());
  file->reset();
  EXPECT_EQ(Read(path_), "begin end");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportDestinationTest, DirectoryResumesEachFile) {
  {
    auto directory = OpenDirectory(path_);
    ASSERT_TRUE((*directory)->Begin("deep/whole", 0).ok());
    ASSERT_TRUE((*directory)->Begin("half", 0).ok());
    ASSERT_TRUE((*directory)->Begin("empty", 0).ok());
    ASSERT_TRUE((*directory)->Write(0, "whole").ok());
    ASSERT_TRUE((*directory)->End(0).ok());
    ASSERT_TRUE((*directory)->Write(1, "ha").ok());
    (*directory)->part()->Leave();
  }
  auto directory = OpenDirectory(path_);
  const auto held = (*directory)->Resume();
  ASSERT_EQ(held->size(), 2u) << "nothing is held of the empty one";
  ASSERT_TRUE((*directory)->Begin("deep/whole", 5).ok());
  ASSERT_TRUE((*directory)->End(0).ok());
  EXPECT_THAT((*directory)->Keep().message(), HasSubstr("did not send empty again"));
  ASSERT_TRUE((*directory)->Begin("half", 2).ok());
  ASSERT_TRUE((*directory)->Begin("empty", 0).ok());
  ASSERT_TRUE((*directory)->Write(1, "lf").ok());
  ASSERT_TRUE((*directory)->End(1).ok());
  ASSERT_TRUE((*directory)->End(2).ok());
  ASSERT_TRUE((*directory)->Keep().ok());
  EXPECT_EQ(Read(path_ + "/deep/whole"), "whole");
  EXPECT_EQ(Read(path_ + "/half"), "half");
  directory->reset();
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportDestinationTest, RestartedExportHoldsNothing) {
  for (const bool is_directory : {false, true}) {
    auto destination =
        OpenDestination({.path = path_, .is_directory = is_directory, .request = "r"});
    ASSERT_TRUE((*destination)->Begin("a", 0).ok());
    ASSERT_TRUE((*destination)->Write(0, "old and long").ok());
    ASSERT_TRUE((*destination)->Restart().ok());
    EXPECT_TRUE((*destination)->Resume()->empty());
    ASSERT_TRUE((*destination)->Begin("b", 0).ok());
    ASSERT_TRUE((*destination)->Write(0, "new").ok());
    ASSERT_TRUE((*destination)->End(0).ok());
    ASSERT_TRUE((*destination)->Keep().ok());
    destination->reset();
    EXPECT_EQ(Read(is_directory ? path_ + "/b" : path_), "new");
    EXPECT_EQ(Entries(), 1u);
    std::filesystem::remove_all(path_);
  }
}

}  // namespace
}  // namespace neurontrace::cli
