// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elf_test_support.h"
#include "cli/fake_host_view.h"
#include "cli/process_tree.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWorkersSocket[] = "/run/neurontrace/agent.sock";
constexpr char kOnlyRuntime[] = "7f00-7f01 r-xp 0 08:01 1 /opt/aws/neuron/lib/libnrt.so.1\n";
constexpr char kRuntimeAndTap[] =
    "7f00-7f01 r-xp 0 08:01 1 /opt/aws/neuron/lib/libnrt.so.1\n"
    "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libneurontrace_tap.so\n";

class DoctorWorkersTest : public testing::Test {
 protected:
  std::vector<Finding> Check() { return CheckWorkers(host_, "/proc", kWorkersSocket); }
  static std::string Environment(std::initializer_list<const char*> variables) {
    std::string text;
    for (const char* const variable : variables) text += std::string(variable) + '\0';
    return text;
  }
  FakeHostView host_;
};

TEST_F(DoctorWorkersTest, AWorkerWithATapIsGood) {
  host_.PutProcess(10, 1, "python", kRuntimeAndTap, Environment({"A=b"}));
  ASSERT_EQ(Check().size(), 2u);
  EXPECT_EQ(Check()[0].severity, Severity::kGood);
  EXPECT_EQ(Check()[0].what, "pid 10 (python) has the tap");
  EXPECT_EQ(Check()[1].what, "/opt/aws/neuron/lib/libnrt.so.1 in 1 process");
}

TEST_F(DoctorWorkersTest, AWorkerWithoutATapIsBroken) {
  host_.PutProcess(10, 1, "python", kOnlyRuntime);
  EXPECT_EQ(Check()[0].severity, Severity::kBroken);
  EXPECT_THAT(Check()[0].fix, HasSubstr("LD_PRELOAD"));
}

TEST_F(DoctorWorkersTest, ReportsEnvironmentOfWorkerWithoutTap) {
  host_.PutProcess(10, 1, "python", kOnlyRuntime,
                   Environment({"LD_PRELOAD=/usr/lib/libtcmalloc.so.4"}));
  EXPECT_THAT(Check()[0].what, HasSubstr("LD_PRELOAD=/usr/lib/libtcmalloc.so.4"));
  EXPECT_THAT(Check()[0].fix, HasSubstr("replaced LD_PRELOAD"));
  host_.PutProcess(10, 1, "python", kOnlyRuntime,
                   Environment({"LD_PRELOAD=/nowhere/libneurontrace_tap.so"}));
  EXPECT_THAT(Check()[0].fix, HasSubstr("check that the file exists"));
  host_.PutProcess(10, 1, "python", kOnlyRuntime, Environment({"HOME=/root"}));
  EXPECT_THAT(Check()[0].what, HasSubstr("started without LD_PRELOAD"));
}

TEST_F(DoctorWorkersTest, ReportsTapWithOtherSocket) {
  host_.PutProcess(10, 1, "python", kRuntimeAndTap,
                   Environment({"NEURONTRACE_AGENT_SOCKET=/other.sock"}));
  EXPECT_EQ(Check()[0].severity, Severity::kWarning);
  EXPECT_THAT(Check()[0].fix, HasSubstr("NEURONTRACE_AGENT_SOCKET=/run/neurontrace/agent.sock"));
}

TEST_F(DoctorWorkersTest, ARuntimeThatRecordsForItself) {
  host_.PutProcess(10, 1, "python", kRuntimeAndTap, Environment({"NEURON_RT_INSPECT_ENABLE=1"}));
  ASSERT_EQ(Check().size(), 3u);
  EXPECT_EQ(Check()[1].severity, Severity::kWarning);
  host_.PutProcess(10, 1, "python", kRuntimeAndTap, Environment({"NEURON_RT_INSPECT_ENABLE=0"}));
  EXPECT_EQ(Check().size(), 2u);
}

// As many as a large instance has: the one that is ill is among the last.
TEST_F(DoctorWorkersTest, NoneOfManyIsPassedOver) {
  for (uint32_t pid = 100; pid < 131; ++pid) {
    host_.PutProcess(pid, 1, "python", kRuntimeAndTap, Environment({"A=b"}));
  }
  host_.PutProcess(131, 1, "python", kOnlyRuntime);
  const auto findings = Check();
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_THAT(findings[0].what, HasSubstr("31 workers have the tap: pid 100, 101, "));
  EXPECT_EQ(findings[1].severity, Severity::kBroken);
  EXPECT_THAT(findings[1].what, HasSubstr("pid 131 (python) uses libnrt.so.1 without the tap"));
  EXPECT_THAT(findings[2].what, HasSubstr("in 32 processes"));
}

TEST_F(DoctorWorkersTest, ShowsFirstAndCountsOthersWithSameProblem) {
  for (uint32_t pid = 100; pid < 120; ++pid) host_.PutProcess(pid, 1, "python", kOnlyRuntime);
  host_.PutProcess(120, 1, "python", kRuntimeAndTap, Environment({"NEURON_RT_INSPECT_ENABLE=1"}));
  const auto findings = Check();
  ASSERT_EQ(findings.size(), 1u + 16 + 1 + 1 + 1);
  EXPECT_EQ(findings[17].severity, Severity::kBroken);
  EXPECT_EQ(findings[17].what,
            "4 more workers use libnrt.so.1 without the tap: pid 116, 117, 118, 119");
  EXPECT_THAT(findings[17].fix, HasSubstr("LD_PRELOAD"));
  EXPECT_THAT(findings[18].what, HasSubstr("pid 120 (python) has NEURON_RT_INSPECT_ENABLE set"));
}

TEST_F(DoctorWorkersTest, NamesTheRuntimesThatAreMapped) {
  constexpr char kTapLine[] = "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libneurontrace_tap.so\n";
  constexpr char kLine[] = "7f00-7f01 r-xp 0 08:01 1 /opt/aws/neuron/lib/libnrt.so.";
  host_.PutProcess(10, 1, "python", std::string(kTapLine) + kLine + "2.22.4.0\n");
  host_.PutProcess(11, 1, "python", std::string(kLine) + "2.31.24.0 (deleted)\n" + kTapLine);
  const auto findings = Check();
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1].check, "worker runtime");
  EXPECT_EQ(findings[1].severity, Severity::kNote) << "they are not alike";
  EXPECT_EQ(findings[1].what, "/opt/aws/neuron/lib/libnrt.so.2.22.4.0 in 1 process");
  EXPECT_EQ(findings[2].what, "/opt/aws/neuron/lib/libnrt.so.2.31.24.0 (deleted) in 1 process");
}

TEST_F(DoctorWorkersTest, ForeignNamesCannotControlTerminal) {
  host_.PutProcess(10, 1, "py\x1b[2Jx", kRuntimeAndTap,
                   Environment({"NEURONTRACE_AGENT_SOCKET=/a\x1b]0;x\x07.sock"}));
  EXPECT_EQ(FormatFindings(Check()).find('\x1b'), std::string::npos);
  EXPECT_EQ(ExamineProcess(host_, "/proc", 10).name, "py?[2Jx");
}

TEST_F(DoctorWorkersTest, ReportsUnreadableProcesses) {
  host_.PutProcess(10, 1, "python", kRuntimeAndTap);
  host_.PutFile("/proc/11/stat", "11 (secret) S 1");  // and no maps
  ASSERT_EQ(Check().size(), 3u);
  EXPECT_THAT(Check()[2].what, HasSubstr("1 processes of other users"));
  host_.user_id = 0;
  EXPECT_EQ(Check().size(), 2u);
}

TEST_F(DoctorWorkersTest, NoWorkerIsNoProblem) {
  ASSERT_EQ(Check().size(), 1u);
  EXPECT_EQ(Check()[0].severity, Severity::kNote);
}

TEST_F(DoctorWorkersTest, TrapsOfPreloading) {
  EXPECT_THAT(CheckPreload(host_, {}), IsEmpty());
  host_.environment["LD_PRELOAD"] = "/gone.so:libsome.so /there.so";
  host_.PutFile("/there.so", "");
  ASSERT_EQ(CheckPreload(host_, {}).size(), 1u);
  EXPECT_EQ(CheckPreload(host_, {})[0].what, "/gone.so does not exist");
  host_.environment.clear();
  host_.PutFile("/bin/static", FakeElf{}.Bytes());
  host_.PutFile("/bin/good", FakeElf{.interpreter = "/lib64/ld-linux-x86-64.so.2"}.Bytes());
  const auto findings = CheckPreload(host_, {"/bin/static", "/bin/good"});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, Severity::kBroken);
  EXPECT_EQ(findings[1].severity, Severity::kGood);
}

TEST_F(DoctorWorkersTest, NamesWhatAWorkerLacksForFrameworkTraces) {
  const LocalAgent agent{.kineto_directory = "/run/k", .framework_directory = "/data/t"};
  const auto check = [&](std::initializer_list<const char*> variables) {
    host_.PutProcess(10, 1, "python", kRuntimeAndTap, Environment(variables));
    return CheckWorkers(host_, "/proc", kWorkersSocket, agent);
  };
  const auto lacking = check({"KINETO_USE_DAEMON=1", "KINETO_IPC_SOCKET_DIR=/other"});
  ASSERT_EQ(lacking.size(), 3u);
  EXPECT_EQ(lacking[1].severity, Severity::kNote);
  EXPECT_THAT(lacking[1].what,
              HasSubstr("without KINETO_IPC_SOCKET_DIR=/run/k, KINETO_ONDEMAND_TRACE_DIR=/data/t"));
  EXPECT_THAT(lacking[1].fix, HasSubstr("KINETO_ONDEMAND_TRACE_DIR=/data/t"));
  EXPECT_EQ(check({"KINETO_USE_DAEMON=1", "KINETO_IPC_SOCKET_DIR=/run/k",
                   "KINETO_ONDEMAND_TRACE_DIR=/data/t"})
                .size(),
            2u);
  EXPECT_EQ(Check().size(), 2u) << "an agent that asks no framework";
}

TEST_F(DoctorWorkersTest, NamesTheVariableOfXlasProfiler) {
  const LocalAgent agent{.framework_directory = "/data/t"};
  const auto check = [&](const std::string& mapped, std::initializer_list<const char*> variables) {
    host_.PutProcess(10, 1, "python", kRuntimeAndTap + mapped, Environment(variables));
    return CheckWorkers(host_, "/proc", kWorkersSocket, agent);
  };
  const std::string jaxlib = "7f04-7f05 r-xp 0 08:01 3 /lib/jaxlib/libjax_common.so\n";
  const auto lacking = check(jaxlib, {"A=1"});
  ASSERT_EQ(lacking.size(), 3u);
  EXPECT_EQ(lacking[1].severity, Severity::kNote);
  EXPECT_THAT(lacking[1].what, HasSubstr("started without NEURONTRACE_XLA_PORT"));
  EXPECT_THAT(lacking[1].fix, HasSubstr("jax.profiler.start_server(PORT)"));
  EXPECT_EQ(check(jaxlib, {"NEURONTRACE_XLA_PORT=9012"}).size(), 2u);
  EXPECT_EQ(check("", {"A=1"}).size(), 2u) << "a worker without XLA";
}

}  // namespace
}  // namespace neurontrace::cli
