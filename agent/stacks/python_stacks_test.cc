// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/python_stacks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/base/small_file.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Frame(const std::string& name) {
  return fmt::format(R"({{"name":"{}","filename":"/job/train.py","line":3,"locals":null}})", name);
}

std::string Thread(uint64_t id, const std::string& frames) {
  return fmt::format(
      R"({{"pid":7,"thread_name":"t","os_thread_id":{},"owns_gil":true,"frames":[{}]}})", id,
      frames);
}

std::vector<std::string> FunctionsOf(const StackThread& thread) {
  std::vector<std::string> names;
  for (const StackFrame& frame : thread.frames) names.push_back(frame.function);
  return names;
}

// Recorded from py-spy 0.4.3 and a program with three threads; only directories were replaced.
TEST(PythonStacks, ReadsWhatPySpyPrints) {
  const auto text = ReadSmallFile(
      std::string(NEURONTRACE_SOURCE_DIR) + "/tests/golden/py_spy_dump.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto stacks = ParsePythonStacks(*text, 32'662);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  ASSERT_THAT(stacks->threads, SizeIs(3));
  EXPECT_EQ(stacks->left_out, 0u);
  EXPECT_EQ(stacks->threads[0].os_thread_id, 32'662u) << "the main thread is the first";
  EXPECT_THAT(FunctionsOf(stacks->threads[0]), ElementsAre("<module>", "train", "all_reduce"));
  EXPECT_EQ(stacks->threads[0].frames[2],
            (StackFrame{.function = "all_reduce", .file = "worker.py", .line = 14}));
  EXPECT_EQ(stacks->threads[2].name, "loader");
  EXPECT_THAT(FunctionsOf(stacks->threads[2]),
              ElementsAre("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run",
                          "load_batch", "Condition.wait"));
}

TEST(PythonStacks, CleansAndCutsNames) {
  const auto stacks =
      ParsePythonStacks("[" + Thread(7, R"({"name":"a\u001b[31m\nb","filename":"/x/y\u0007.py"})") +
                            "," + Thread(8, Frame(std::string(1'000, 'f'))) + "]",
                        7);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_EQ(stacks->threads[0].frames[0].function, "a?[31m?b");
  EXPECT_EQ(stacks->threads[0].frames[0].file, "y?.py");
  EXPECT_THAT(stacks->threads[1].frames[0].function, SizeIs(limits::kStackNameBytesMax));
}

TEST(PythonStacks, LeavesOutTheMiddleOfADeepStack) {
  std::string frames;
  for (size_t i = 0; i < 200; ++i) frames += (i == 0 ? "" : ",") + Frame(fmt::format("f{}", i));
  const auto stacks = ParsePythonStacks("[" + Thread(7, frames) + "]", 7);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  const std::vector<std::string> names = FunctionsOf(stacks->threads[0]);
  ASSERT_THAT(names, SizeIs(limits::kStackFramesMax));
  EXPECT_EQ(names.front(), "f199");
  EXPECT_EQ(names.back(), "f0");
  EXPECT_EQ(names[limits::kStackFramesMax - limits::kStackInnermostFrames - 1],
            "(frames left out)");
  EXPECT_EQ(stacks->left_out, 200 - limits::kStackFramesMax + 1);
}

TEST(PythonStacks, LeavesOutThreadsBeyondTheLimitButNeverTheMainOne) {
  std::string threads;
  for (size_t i = 1; i <= limits::kStackThreadsMax + 5; ++i) {
    threads += (i == 1 ? "" : ",") + Thread(i, Frame("f"));
  }
  const auto stacks = ParsePythonStacks("[" + threads + "]", limits::kStackThreadsMax + 5);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_THAT(stacks->threads, SizeIs(limits::kStackThreadsMax));
  EXPECT_EQ(stacks->threads[0].os_thread_id, limits::kStackThreadsMax + 5);
  EXPECT_EQ(stacks->left_out, 5u);
}

TEST(PythonStacks, LimitsTheBytesOfAll) {
  std::string frames;
  for (size_t i = 0; i < 100; ++i) frames += (i == 0 ? "" : ",") + Frame(std::string(150, 'f'));
  std::string threads;
  for (size_t i = 1; i <= 100; ++i) threads += (i == 1 ? "" : ",") + Thread(i, frames);
  const auto stacks = ParsePythonStacks("[" + threads + "]", 1);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_LT(stacks->threads.size(), 100u);
  EXPECT_EQ(stacks->threads.size() + stacks->left_out, 100u);
}

TEST(PythonStacks, RefusesWhatIsNotOfPySpy) {
  for (const std::string& text :
       {std::string(""), std::string("{}"), std::string("[1]"), std::string(R"([{"frames":1}])"),
        "[" + Thread(7, "3") + "]", "[" + Thread(7, R"({"line":1})") + "]",
        "[" + Thread(7, Frame("f")), std::string(R"([{"frames":[{"name":"\ud800"}]}])"),
        std::string(1'000, '[') + std::string(1'000, ']')}) {
    const auto stacks = ParsePythonStacks(text, 7);
    EXPECT_EQ(stacks.status().code(), absl::StatusCode::kInvalidArgument) << text.substr(0, 80);
  }
  EXPECT_THAT(std::string(ParsePythonStacks(std::string(limits::kStacksProgramBytesMax + 1, ' '), 7)
                              .status()
                              .message()),
              HasSubstr("the limit is"));
}

}  // namespace
}  // namespace neurontrace
