// SPDX-License-Identifier: Apache-2.0
// Goal: what has the real name is whole, and what an aggregator sends stays where it belongs.
#include "cli/export_destination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  const std::string root_ = testing::TempDir() + "/export_destination";
  const std::string path_ = root_ + "/trace";
};

TEST_F(ExportDestinationTest, AFileHasItsNameOnceItIsWhole) {
  std::ofstream(path_) << "what was there";
  {
    auto file = OpenFileDestination(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Begin("system_profile.pftrace").ok());
    ASSERT_TRUE((*file)->Write(0, "new").ok());
    EXPECT_THAT((*file)->Keep().message(), HasSubstr("did not end"));
    EXPECT_EQ(Read(path_), "what was there");
    ASSERT_TRUE((*file)->End(0).ok());
    ASSERT_TRUE((*file)->Keep().ok());
    EXPECT_EQ(Read(path_), "new");
  }
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportDestinationTest, AFileTakesOneFileAndItsBytes) {
  auto file = OpenFileDestination(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE((*file)->Write(0, "early").ok());
  ASSERT_TRUE((*file)->Begin("a").ok());
  EXPECT_FALSE((*file)->Write(1, "of another").ok());
  EXPECT_FALSE((*file)->Begin("b").ok());
  file->reset();
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ExportDestinationTest, AFileIsNotPutInThePlaceOfADirectory) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(OpenFileDestination(path_).status().message(), HasSubstr("is a directory"));
}

TEST_F(ExportDestinationTest, ADirectoryHasItsNameOnceItIsWhole) {
  {
    auto directory = OpenDirectoryDestination(path_ + "/");
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_TRUE((*directory)->Begin("part/a.bin").ok());
    ASSERT_TRUE((*directory)->Begin("b.bin").ok());
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
  EXPECT_THAT(OpenDirectoryDestination(path_).status().message(), HasSubstr("name another"));
}

TEST_F(ExportDestinationTest, NamesStayBelowTheDirectory) {
  auto directory = OpenDirectoryDestination(path_);
  ASSERT_TRUE(directory.ok());
  for (const char* name : {"", "/etc/passwd", "../up", "a/../../up", "a/", "."}) {
    EXPECT_EQ((*directory)->Begin(name).code(), absl::StatusCode::kDataLoss) << name;
  }
  ASSERT_TRUE((*directory)->Begin("a").ok());
  EXPECT_FALSE((*directory)->Begin("a").ok()) << "twice";
  directory->reset();
  EXPECT_EQ(Entries(), 0u);
  EXPECT_EQ(OpenDirectoryDestination("-").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace neurontrace::cli
