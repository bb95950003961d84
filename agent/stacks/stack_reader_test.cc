// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/stacks/stack_sampler.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kPid = 7;
constexpr uint64_t kStart = 4'711;

class StackReaderTest : public ::testing::Test {
 protected:
  StackReaderTest() {
    Write("proc/7/stat", Stat("S", kStart));
    PutThread(7, "python", "futex_wait_queue\n", "202 0x1 0x2 0x3\n");
  }

  static std::string Stat(const std::string& state, uint64_t start) {
    return fmt::format("7 (a) b) {} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n", state, start);
  }
  void PutThread(int id, const std::string& name, const std::string& channel,
                 const std::string& call) {
    const std::string folder = fmt::format("proc/7/task/{}/", id);
    Write(folder + "comm", name + "\n");
    Write(folder + "stat", Stat("D", 1));
    Write(folder + "wchan", channel);
    Write(folder + "syscall", call);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string Program(const std::string& script) {
    const std::string path = Write("py-spy", "#!/bin/sh\n" + script + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }
  StacksReading Read(const std::string& program, uint64_t time_ns = limits::kStacksProgramNs) {
    const StackReader reader(
        {.program = program, .proc = directory_.path() + "/proc", .time_ns = time_ns});
    return reader.Read({.instance_id = "i-1", .pid = kPid, .start_time_ticks = kStart});
  }

  TemporaryDirectory directory_;
};

TEST_F(StackReaderTest, ReadsTheKernelsThreads) {
  PutThread(9, "loader", "0", "running\n");
  PutThread(8, "nrt", "", "");
  const StacksReading reading = Read("");
  EXPECT_EQ(reading.stacks.outcome, StacksOutcome::kNoProgram);
  EXPECT_THAT(reading.stacks.detail, HasSubstr("--stacks-program"));
  EXPECT_THAT(reading.stacks.kernel_threads,
              ElementsAre(KernelThread{7, "python", "D", "futex_wait_queue", 202},
                          KernelThread{8, "nrt", "D", "", KernelThread::kUnreadable},
                          KernelThread{9, "loader", "D", "", KernelThread::kNoCall}));
}

TEST_F(StackReaderTest, TakesStacksAndKeepsWhatWasPrinted) {
  const std::string json = R"([{"os_thread_id":7,"frames":[{"name":"f","filename":"/a/b.py"}]}])";
  const StacksReading reading =
      Read(Program("[ \"$*\" = 'dump --json --nonblocking --pid 7' ] || "
                   "exit 9\necho '" +
                   json + "'"));
  EXPECT_EQ(reading.stacks.outcome, StacksOutcome::kTaken) << reading.stacks.detail;
  ASSERT_THAT(reading.stacks.threads, SizeIs(1));
  EXPECT_EQ(reading.stacks.threads[0].frames[0].file, "b.py");
  EXPECT_EQ(reading.raw, json + "\n");
}

TEST_F(StackReaderTest, ReportsEachOutcome) {
  const auto outcome = [this](const std::string& script) {
    const StacksReading reading = Read(Program(script));
    EXPECT_THAT(reading.stacks.detail, ::testing::Not(IsEmpty()));
    EXPECT_THAT(reading.stacks.kernel_threads, SizeIs(1));
    return reading.stacks.outcome;
  };
  // The texts are those of py-spy 0.4.3.
  EXPECT_EQ(outcome("echo 'Permission denied (os error 13)' >&2; exit 1"),
            StacksOutcome::kNotPermitted);
  EXPECT_EQ(outcome("echo 'Operation not permitted (os error 1)' >&2; exit 1"),
            StacksOutcome::kNotPermitted);
  EXPECT_EQ(outcome("echo 'Error: Failed to find python version from target process' >&2; exit 1"),
            StacksOutcome::kNotPython);
  EXPECT_EQ(outcome("echo broken >&2; exit 1"), StacksOutcome::kFailed);
  EXPECT_EQ(outcome("kill -9 $$"), StacksOutcome::kFailed);
  EXPECT_EQ(outcome("echo '{}'"), StacksOutcome::kMalformed);
  EXPECT_EQ(outcome("head -c 5000000 /dev/zero"), StacksOutcome::kTooLarge);
  EXPECT_EQ(Read("/nowhere/py-spy").stacks.outcome, StacksOutcome::kNotInstalled);
  EXPECT_EQ(Read(Program("sleep 1000"), 50'000'000).stacks.outcome, StacksOutcome::kTimedOut);
}

TEST_F(StackReaderTest, DoesNotReadAnotherProcessWithTheSameNumber) {
  Write("proc/7/stat", Stat("S", kStart + 1));
  const StacksReading reading = Read(Program("echo '[]'"));
  EXPECT_EQ(reading.stacks.outcome, StacksOutcome::kEnded);
  EXPECT_THAT(reading.stacks.kernel_threads, IsEmpty());
}

TEST_F(StackReaderTest, DiscardsWhatAnotherProcessMayHaveShown) {
  const std::string stat = directory_.path() + "/proc/7/stat";
  const StacksReading reading = Read(Program("rm " + stat + "\necho '[]'"));
  EXPECT_EQ(reading.stacks.outcome, StacksOutcome::kEnded);
  EXPECT_THAT(reading.raw, IsEmpty());
}

class RecordedStacks final : public StacksSink {
 public:
  void OnStacks(const StacksReading& reading) override {
    outcomes.push_back(reading.stacks.outcome);
  }
  std::vector<StacksOutcome> outcomes;
};

TEST(StackSampler, AnswersForWhatCannotBeRead) {
  FakeClock clock;
  FakeTaskRunner runner(clock);
  RecordedStacks sink;
  StackSampler sampler("", runner, sink);
  sampler.Collect({}, 1, {.worker = {.pid = 1}, .is_known = false});
  sampler.Collect({}, 1, {.worker = {.pid = 1}, .is_elsewhere = true});
  EXPECT_THAT(sink.outcomes, ElementsAre(StacksOutcome::kEnded, StacksOutcome::kOtherNamespace));
}

}  // namespace
}  // namespace neurontrace
