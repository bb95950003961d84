// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_file_system.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Operation = FakeFileSystem::Operation;

constexpr char kRoot[] = "/spool";
constexpr char kCapture[] = "/spool/01M80BDF0EMHPSPT11J5N3R5MG";

// While `--spool-check` looks, the agent it asks about goes on storing, sending and removing.
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

TEST_F(SpoolCheckTest, FilesRemovedAfterTheyWereListedArePassedOver) {
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

TEST_F(SpoolCheckTest, DirectoryRemovedAfterItWasListedIsPassedOver) {
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

}  // namespace
}  // namespace neurontrace
