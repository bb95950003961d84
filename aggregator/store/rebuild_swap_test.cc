// SPDX-License-Identifier: Apache-2.0
// An interrupted rebuild is completed by its marker, and a marker with any other contents than a
// rebuild writes moves nothing.
#include "aggregator/store/rebuild_swap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

void WriteFile(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary) << bytes;
}

std::string ReadFile(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RebuildSwapTest : public ::testing::Test {
 protected:
  RebuildSwapTest() : path_(directory_.path() + "/store") {}

  // As it is once the new files are complete and before the first old one is moved.
  void Prepare(const std::string& marker) {
    std::filesystem::remove_all(directory_.path() + "/victim");
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ + "/rebuilding");
    WriteFile(path_ + "/CURRENT", "old");
    WriteFile(path_ + "/rebuilding/CURRENT", "new");
    WriteFile(path_ + "/rebuilding/COMPLETE", marker);
  }
  absl::Status Resume() { return ResumeRebuilding(path_, *rocksdb::Env::Default()); }

  const TemporaryDirectory directory_;
  const std::string path_;
};

TEST_F(RebuildSwapTest, EndsTheMoveThatItsMarkerNames) {
  for (const std::string marker : {"damaged-1", "damaged-2147483647", "damaged-7\n"}) {
    Prepare(marker);
    const absl::Status status = Resume();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ReadFile(path_ + "/CURRENT"), "new");
    EXPECT_EQ(ReadFile(path_ + "/" + marker.substr(0, marker.find('\n')) + "/CURRENT"), "old");
    EXPECT_FALSE(std::filesystem::exists(path_ + "/rebuilding"));
  }
}

TEST_F(RebuildSwapTest, LeavesForeignFiles) {
  Prepare("damaged-1");
  WriteFile(path_ + "/audit.log", "who did what");
  WriteFile(path_ + "/rebuilding/notes", "of a person");
  ASSERT_TRUE(Resume().ok());
  EXPECT_EQ(ReadFile(path_ + "/CURRENT"), "new");
  EXPECT_EQ(ReadFile(path_ + "/audit.log"), "who did what");
  EXPECT_EQ(ReadFile(path_ + "/rebuilding/notes"), "of a person");
  // The next rebuild is not in its way.
  ASSERT_TRUE(BeginRebuilding(path_, *rocksdb::Env::Default()).ok());
  WriteFile(path_ + "/rebuilding/CURRENT", "newer");
  EXPECT_EQ(FinishRebuilding(path_, *rocksdb::Env::Default()).value(), "damaged-2");
  EXPECT_EQ(ReadFile(path_ + "/CURRENT"), "newer");
}

TEST_F(RebuildSwapTest, AMarkerThatNamesAnythingElseMovesNothing) {
  for (const std::string& marker :
       {std::string("../victim"), std::string("damaged-1/../../victim"), std::string("damaged-"),
        std::string("damaged-x"), std::string("damaged-1 "), std::string("artifacts"),
        std::string("."), std::string(), std::string("damaged-12345678901"),
        std::string("damaged-1\0", 10), std::string(1 << 20, '\x1b')}) {
    Prepare(marker);
    const absl::Status status = Resume();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << marker;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + "/rebuilding/COMPLETE"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("write damaged-N into it"));
    EXPECT_LT(status.message().size(), 1'000u);
    EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
    EXPECT_EQ(ReadFile(path_ + "/CURRENT"), "old");
    EXPECT_EQ(ReadFile(path_ + "/rebuilding/CURRENT"), "new");
    EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/victim"));
  }
}

}  // namespace
}  // namespace neurontrace
