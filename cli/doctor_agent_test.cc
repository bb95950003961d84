// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kSocket[] = "/run/neurontrace/agent.sock";
constexpr uint64_t kGiB = uint64_t{1} << 30;

class DoctorAgentTest : public testing::Test {
 protected:
  void PutAgent(const std::string& command_line) {
    std::string words = command_line;
    std::replace(words.begin(), words.end(), ' ', '\0');
    host_.PutFile("/proc/77/cmdline", words + '\0');
  }
  FakeHostView host_;
};

TEST_F(DoctorAgentTest, AnAgentThatAnswersIsGood) {
  host_.PutSocket(kSocket, 0660, 0);
  const Finding finding = CheckAgentSocket(host_, kSocket, true);
  EXPECT_EQ(finding.severity, Severity::kGood);
  EXPECT_THAT(finding.what, HasSubstr("answers at /run/neurontrace/agent.sock"));
}

TEST_F(DoctorAgentTest, NoSocketIsBrokenOnlyWhereAnAgentBelongs) {
  EXPECT_EQ(CheckAgentSocket(host_, kSocket, true).severity, Severity::kBroken);
  EXPECT_THAT(CheckAgentSocket(host_, kSocket, true).fix, HasSubstr("start neurontrace-agent"));
  EXPECT_EQ(CheckAgentSocket(host_, kSocket, false).severity, Severity::kNote);
}

TEST_F(DoctorAgentTest, ExplainsUnusableSocket) {
  host_.PutSocket(kSocket, 0660, 0);
  host_.connect_status = FailedPrecondition("no");
  Finding finding = CheckAgentSocket(host_, kSocket, true);
  EXPECT_EQ(finding.severity, Severity::kBroken);
  EXPECT_THAT(finding.what, HasSubstr("user 1000 may not connect"));
  EXPECT_THAT(finding.what, HasSubstr("mode 660"));

  host_.connect_status = Unavailable("refused");
  finding = CheckAgentSocket(host_, kSocket, true);
  EXPECT_EQ(finding.severity, Severity::kBroken);
  EXPECT_THAT(finding.what, HasSubstr("nothing listens"));

  host_.PutFile(kSocket, "");
  EXPECT_THAT(CheckAgentSocket(host_, kSocket, true).what, HasSubstr("is not a socket"));
}

TEST_F(DoctorAgentTest, ASocketForEverybodyIsAWarning) {
  host_.PutSocket(kSocket, 0666, 0);
  const Finding finding = CheckAgentSocket(host_, kSocket, true);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.fix, HasSubstr("--socket-mode 0660"));
}

TEST_F(DoctorAgentTest, ReadsTheAgentsOptionsFromItsCommandLine) {
  EXPECT_FALSE(FindLocalAgent(host_, "/proc").pid);
  PutAgent("/usr/bin/neurontrace-agent --socket /s.sock --spool=/data/spool --spool-bytes 1GiB");
  const LocalAgent agent = FindLocalAgent(host_, "/proc");
  EXPECT_EQ(agent.pid, 77u);
  EXPECT_EQ(agent.socket, "/s.sock");
  EXPECT_EQ(agent.spool, "/data/spool");
  EXPECT_EQ(agent.spool_bytes, kGiB);
  PutAgent("neurontrace-agent --spool-bytes much --spool");
  EXPECT_EQ(FindLocalAgent(host_, "/proc").spool_bytes, 4 * kGiB);
}

TEST_F(DoctorAgentTest, ASpoolNeedsRoomForItsSize) {
  host_.PutDirectory("/data/spool");
  const LocalAgent agent{.pid = 77, .spool = "/data/spool", .spool_bytes = 4 * kGiB};
  EXPECT_EQ(CheckSpool(host_, agent).severity, Severity::kGood);
  host_.free_bytes = kGiB;
  EXPECT_EQ(CheckSpool(host_, agent).severity, Severity::kWarning);
  EXPECT_THAT(CheckSpool(host_, agent).what,
              HasSubstr("1.0 GiB free at /data/spool, but the spool may grow to 4.0 GiB"));
  host_.free_bytes = 1000;
  EXPECT_EQ(CheckSpool(host_, agent).severity, Severity::kBroken);
}

TEST_F(DoctorAgentTest, ASpoolHasToBeThereAndWritable) {
  host_.PutDirectory("/");
  EXPECT_EQ(CheckSpool(host_, {}).severity, Severity::kNote);  // nor is there an agent
  const LocalAgent stopped{.spool = "/data/spool"};
  host_.PutDirectory("/data/spool");
  host_.unwritable.insert("/data/spool");
  EXPECT_EQ(CheckSpool(host_, stopped).severity, Severity::kWarning);
  EXPECT_THAT(CheckSpool(host_, stopped).fix, HasSubstr("chown"));
  EXPECT_EQ(CheckSpool(host_, {.pid = 7, .spool = "none"}).severity, Severity::kWarning);
}

}  // namespace
}  // namespace neurontrace::cli
