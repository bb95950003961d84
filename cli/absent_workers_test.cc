// SPDX-License-Identifier: Apache-2.0
#include "cli/absent_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elf_test_support.h"
#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kUsualLoader[] = "/lib64/ld-linux-x86-64.so.2";
constexpr char kRuntimeMapped[] = "7f00-7f01 r-xp 0 08:01 1 /opt/aws/neuron/lib/libnrt.so.1\n";
constexpr char kLibcMapped[] = "7f04-7f05 r-xp 0 08:01 3 /usr/lib/libc.so.6\n";
constexpr char kTapMapped[] = "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libneurontrace_tap.so\n";

class AbsentWorkersTest : public testing::Test {
 protected:
  std::string Obstacle(const FakeElf& elf, uint32_t mode = 0755) {
    host_.PutFile("/bin/tool", elf.Bytes(), mode);
    return PreloadObstacle(host_, "/bin/tool");
  }
  std::vector<std::string> Explain() {
    ProcessTree tree(host_, "/proc", 10);
    tree.Scan();
    return ExplainNoWorker(tree, "");
  }
  FakeHostView host_;
};

TEST_F(AbsentWorkersTest, OrdinaryProgramsAreFine) {
  EXPECT_EQ(Obstacle({.interpreter = kUsualLoader}), "");
  EXPECT_EQ(PreloadObstacle(host_, "/bin/none"), "");
  host_.PutFile("/bin/script", "#!/bin/tool -x\n");
  EXPECT_EQ(PreloadObstacle(host_, "/bin/script"), "");
}

TEST_F(AbsentWorkersTest, NamesWhatKeepsALibraryOut) {
  EXPECT_THAT(Obstacle({.interpreter = ""}), HasSubstr("statically linked"));
  EXPECT_THAT(Obstacle({.interpreter = "/lib/ld-musl-x86_64.so.1"}),
              HasSubstr("a different C library"));
  EXPECT_THAT(Obstacle({.interpreter = kUsualLoader, .machine = EM_PPC64}),
              HasSubstr("a different processor architecture"));
  EXPECT_THAT(Obstacle({.interpreter = kUsualLoader}, 04755), HasSubstr("setuid"));
  host_.user_id = 0;  // its owner: nothing changes
  EXPECT_EQ(Obstacle({.interpreter = kUsualLoader}, 04755), "");
}

TEST_F(AbsentWorkersTest, ExaminesInterpreterOfScript) {
  host_.PutFile("/bin/tool", FakeElf{.interpreter = ""}.Bytes());
  host_.PutFile("/bin/script", "#! /bin/tool\nwork\n");
  EXPECT_THAT(PreloadObstacle(host_, "/bin/script"), HasSubstr("/bin/tool is statically linked"));
}

TEST_F(AbsentWorkersTest, ExplainsAbsenceFromProcesses) {
  host_.PutProcess(10, 1, "sh", "");  // its loader has not yet come to the tap
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("none of its processes loaded libnrt.so.1")));
  host_.PutProcess(10, 1, "sh", kLibcMapped);
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("none of its processes loaded the tap")));
  host_.PutProcess(10, 1, "sh", kTapMapped);
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("none of its processes loaded libnrt.so.1")));
  host_.PutProcess(11, 10, "python", std::string(kTapMapped) + kRuntimeMapped);
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("saw no nrt_init")));
  host_.PutProcess(12, 10, "python3", kRuntimeMapped);
  EXPECT_THAT(Explain(), ElementsAre(HasSubstr("process 12 (python3) had libnrt.so.1 but no tap")));
}

TEST_F(AbsentWorkersTest, AnObstacleComesFirst) {
  ProcessTree tree(host_, "/proc", 10);
  EXPECT_THAT(ExplainNoWorker(tree, "it is static"), ElementsAre("it is static"));
}

}  // namespace
}  // namespace neurontrace::cli
