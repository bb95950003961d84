// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "agent/spool/spool_recovery.h"
#include "lib/base/fake_file_system.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Operation = FakeFileSystem::Operation;

constexpr char kRoot[] = "/spool";
constexpr char kCapture[] = "/spool/01M80BDF0EMHPSPT11J5N3R5MG";

// While `--spool-check` looks, the agent it asks about continues storing, sending and removing.
class SpoolCheckTest : public ::testing::Test {
 protected:
  FakeFileSystem disk_;
};

TEST_F(SpoolCheckTest, SegmentThatIsNotYetBegunIsSound) {
  disk_.SetContents(std::string(kCapture) + "/00000001.seg", "");
  const auto report = CheckSpool(disk_, kRoot);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->sound()) << report->ToText();
  EXPECT_THAT(report->segments, SizeIs(1));
}

TEST_F(SpoolCheckTest, SkipsFilesRemovedAfterListing) {
  disk_.SetContents(std::string(kCapture) + "/00000001.seg", "not a segment");
  disk_.SetContents(std::string(kCapture) + "/cursor", "not a cursor");
  {
    const auto report = CheckSpool(disk_, kRoot);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->sound()) << "what is there is looked at";
  }
  disk_.Fail(Operation::kOpen, absl::NotFoundError("gone"));
  const auto report = CheckSpool(disk_, kRoot);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->sound()) << report->ToText();
  EXPECT_THAT(report->segments, IsEmpty());
  EXPECT_THAT(report->cursors, IsEmpty());
}

TEST_F(SpoolCheckTest, SkipsDirectoryRemovedAfterListing) {
  disk_.SetContents(std::string(kCapture) + "/cursor", "not a cursor");
  // The root and the quarantine are listed first.
  disk_.FailAfter(Operation::kList, absl::NotFoundError("gone"), 2);
  const auto report = CheckSpool(disk_, kRoot);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->sound()) << report->ToText();
}

TEST_F(SpoolCheckTest, FileThatCannotBeReadIsAProblem) {
  disk_.SetContents(std::string(kCapture) + "/cursor", "not a cursor");
  disk_.Fail(Operation::kRead, absl::UnavailableError("EIO"));
  const auto report = CheckSpool(disk_, kRoot);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->sound());
  ASSERT_THAT(report->cursors, SizeIs(1));
  EXPECT_THAT(report->cursors[0].problem, HasSubstr("EIO"));
}

// On the machine's own disk, as what is opened there must not block: whoever may write to the
// spool could keep the agent from ending otherwise.
TEST(SpoolOfFifos, ReadsWithoutBlockingAndSkipsNonFiles) {
  char name[] = "/tmp/spool_fifo_test.XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string root = name;
  const std::string capture = root + "/01M80BDF0EMHPSPT11J5N3R5MG";
  std::filesystem::create_directory(capture);
  for (const std::string& file : {capture + "/00000001.seg", capture + "/00000002.seg",
                                  capture + "/cursor", root + "/running", root + "/aggregator"}) {
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  }
  std::filesystem::create_symlink("/dev/zero", capture + "/00000003.seg");
  SystemFileSystem disk;
  const auto report = CheckSpool(disk, root);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->sound());
  EXPECT_THAT(report->segments, SizeIs(3));
  EXPECT_THAT(report->ToText(), HasSubstr("not a regular file"));

  SpoolRecovery recovery(disk, root, "agent-a", "boot", /*gives_up=*/false);
  SpoolRecovery::Summary summary;
  const absl::Status status =
      recovery.Run({.on_capture = [](const CaptureId&, const SpoolCursor&) {},
                    .on_chunk = [](const ChunkHeader&, const SpoolPlace&) { ADD_FAILURE(); }},
                   summary);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(summary.damaged_segments, 3u);
  EXPECT_EQ(summary.files_unreadable, 3u);
  EXPECT_EQ(summary.chunks, 0u);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace neurontrace
