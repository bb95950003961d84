// SPDX-License-Identifier: Apache-2.0
// Goal: the processes that use the runtime are found, once each and at little cost, whatever else
// there is and whatever they write about themselves.
#include "agent/source/neuron/tap/runtime_processes.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/tap/fake_proc.h"

namespace neurontrace {
namespace {

using Again = RuntimeProcesses;

class RuntimeProcessesTest : public ::testing::Test {
 protected:
  // Whole rounds, `times` of them, kRescanMinNs apart.
  void Round(int times = 1) {
    for (int i = 0; i < times; ++i) {
      now_ns_ += Again::kRescanMinNs;
      while (!processes_.Poll(now_ns_)) {
      }
    }
  }
  // The pids found, those with a tap behind a comma.
  std::string Found(std::vector<uint32_t> workers = {}) {
    std::string without, with;
    for (const auto& process : processes_.Find([&](uint32_t pid, uint64_t start) {
           return start == 100 && std::find(workers.begin(), workers.end(), pid) != workers.end();
         })) {
      (process.has_tap ? with : without) += std::to_string(process.pid) + " ";
    }
    return without + "," + with;
  }

  FakeProc proc_;
  RuntimeProcesses processes_{proc_.root()};
  uint64_t now_ns_ = 1;
};

TEST_F(RuntimeProcessesTest, FindsThoseThatMapTheRuntime) {
  proc_.Put({.pid = 10});
  proc_.Put({.pid = 11, .mapped = {"/usr/bin/python3.11", FakeProc::kRuntime}});
  proc_.Put({.pid = 12, .mapped = {FakeProc::kTap, "/x/libnrt.so.1 (deleted)"}});
  proc_.Put({.pid = 13, .mapped = {FakeProc::kTap}});
  proc_.Put(
      {.pid = 14,
       .mapped = {"/x/libnrt.so/y", "/x/libnrt.solid", "/x/mylibnrt.so.1", "/libnrt.so.1/z"}});
  proc_.Put({.pid = 15, .mapped = {"/x/libnrt.so"}});
  Round();
  EXPECT_EQ(Found(), "11 15 ,12 ");
}

TEST_F(RuntimeProcessesTest, SeesALibraryThatIsLoadedLaterAndAnotherProgram) {
  proc_.Put({.pid = 10});
  Round();
  EXPECT_EQ(Found(), ",");
  proc_.Put({.pid = 10, .address_space_bytes = 2'000'000, .mapped = {FakeProc::kRuntime}});
  Round(4);
  EXPECT_EQ(Found(), "10 ,");
  proc_.Put({.pid = 10,
             .address_space_bytes = 3'000'000,
             .mapped = {FakeProc::kRuntime, FakeProc::kTap}});
  Round();
  EXPECT_EQ(Found(), ",10 ");
  // exec: the same process, another program.
  proc_.Put({.pid = 10, .address_space_bytes = 5'000, .code_address = 8'192});
  Round();
  EXPECT_EQ(Found(), ",");
}

TEST_F(RuntimeProcessesTest, AReusedPidIsAnotherProcess) {
  proc_.Put({.pid = 10, .mapped = {FakeProc::kRuntime}});
  Round();
  proc_.Put({.pid = 10, .start_time_ticks = 900});
  Round();
  EXPECT_EQ(Found(), ",");
  proc_.Remove(10);
  Round();
  EXPECT_EQ(processes_.remembered(), 0u);
}

TEST_F(RuntimeProcessesTest, FindsOneProcessPerFamily) {
  const std::vector<std::string> mapped = {FakeProc::kRuntime, FakeProc::kTap};
  proc_.Put({.pid = 10, .mapped = mapped});
  proc_.Put({.pid = 11, .parent = 10});
  proc_.Put({.pid = 12, .parent = 11, .mapped = mapped});
  proc_.Put({.pid = 13, .parent = 12, .mapped = mapped});
  Round();
  EXPECT_EQ(Found(), ",10 ");
  EXPECT_EQ(Found({10}), ",");  // helpers of a worker
  EXPECT_EQ(Found({13}), ",");  // launchers of one
  EXPECT_EQ(Found({11}), ",10 ");
}

TEST_F(RuntimeProcessesTest, AncestorsInACircleEnd) {
  proc_.Put({.pid = 10, .parent = 11, .mapped = {FakeProc::kRuntime}});
  proc_.Put({.pid = 11, .parent = 10});
  proc_.Put({.pid = 12, .parent = 12});
  Round();
  EXPECT_EQ(Found({12}), "10 ,");
}

TEST_F(RuntimeProcessesTest, UnchangedProcessesAreHardlyRead) {
  for (uint32_t pid = 10; pid < 110; ++pid) proc_.Put({.pid = pid});
  proc_.Put({.pid = 2, .address_space_bytes = 0});  // a kernel thread
  proc_.Put({.pid = 200, .mapped = {FakeProc::kRuntime, FakeProc::kTap}});
  Round();
  EXPECT_EQ(processes_.lists_read(), 101u);
  for (uint64_t i = 0; i < 50; ++i) {
    proc_.Put({.pid = 200,
               .address_space_bytes = 1'000 * i + 5,
               .mapped = {FakeProc::kRuntime, FakeProc::kTap}});
    Round();
  }
  EXPECT_EQ(processes_.lists_read(), 101u);
  EXPECT_EQ(Found(), ",200 ");
}

TEST_F(RuntimeProcessesTest, ScansInShortSteps) {
  const uint32_t count = 2 * RuntimeProcesses::kScanProcesses + 1;
  for (uint32_t pid = 10; pid < 10 + count; ++pid) proc_.Put({.pid = pid});
  EXPECT_FALSE(processes_.Poll(1));
  EXPECT_FALSE(processes_.Poll(1));
  EXPECT_TRUE(processes_.Poll(1));
  EXPECT_EQ(processes_.lists_read(), count);
}

TEST_F(RuntimeProcessesTest, AcceptsAnyFileContent) {
  for (const char* stat : {"", "10", "10 (x", "10 (x)", "10 (x) S 1 2 3", "10 (x) S -1 a b c d e f",
                           "10 (x) S 99999999999999999999999"}) {
    proc_.Put({.pid = 10, .mapped = {FakeProc::kRuntime}});
    proc_.Write(10, "stat", stat);
    Round();
    EXPECT_EQ(Found(), ",") << stat;
  }
  // More than is looked at.
  proc_.Put({.pid = 11});
  proc_.Write(11, "maps", std::string(RuntimeProcesses::kMapsBytesMax, 'x') + "/libnrt.so.1\n");
  Round();
  EXPECT_EQ(Found(), ",");
  RuntimeProcesses nowhere(proc_.root() + "/missing");
  EXPECT_TRUE(nowhere.Poll(1));
}

TEST_F(RuntimeProcessesTest, ReadsProcessDescription) {
  proc_.Put({.pid = 10,
             .command = "python train.py --x",
             .environment = {"SECRET=1", "SLURM_JOB_ID=4711", "=odd", "noequals",
                             "LONG=" + std::string(10'000, 'x'), "SLURM_JOB_ID=9"}});
  const auto wanted = [](std::string_view name) { return name != "SECRET"; };
  const ProcessDescription words = ReadProcessDescription(proc_.root(), 10, wanted);
  EXPECT_EQ(words.command, "python train.py --x");
  EXPECT_EQ(words.environment, (Environment{{"", "odd"}, {"SLURM_JOB_ID", "4711"}}));
  EXPECT_EQ(ReadProcessDescription(proc_.root(), 99, wanted).command, "");
}

}  // namespace
}  // namespace neurontrace
