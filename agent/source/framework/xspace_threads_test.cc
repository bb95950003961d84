// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace neurontrace {
namespace {

uint32_t OwnThreadId() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

int64_t OwnLineId() { return XSpaceThreads::LineIdOf(static_cast<uint64_t>(pthread_self())); }

TEST(XSpaceThreadsTest, HashesAsLibstdcxxDoes) {
  // Recorded from jaxlib 0.10.2: pthread_t and the ids of its lines.
  EXPECT_EQ(XSpaceThreads::LineIdOf(0x7fec015b8040), 3411525135575877128);
  EXPECT_EQ(static_cast<uint64_t>(XSpaceThreads::LineIdOf(0x7febe4b296c0)), 14541715397798830593u);
#ifdef __GLIBCXX__
  EXPECT_EQ(static_cast<uint64_t>(OwnLineId()),
            std::hash<std::thread::id>()(std::this_thread::get_id()));
#endif
}

TEST(XSpaceThreadsTest, FindsTheThreadsOfAProcess) {
  if (XSpaceThreads::kIdOffset == 0) GTEST_SKIP() << "the layout of glibc is not known here";
  const XSpaceThreads threads(static_cast<uint32_t>(getpid()));
  EXPECT_EQ(threads.KernelId(OwnLineId()), OwnThreadId());
  std::thread([&] { EXPECT_EQ(threads.KernelId(OwnLineId()), OwnThreadId()); }).join();
}

TEST(XSpaceThreadsTest, BelievesOnlyWhatIsAThread) {
  const XSpaceThreads threads(static_cast<uint32_t>(getpid()));
  EXPECT_EQ(threads.KernelId(OwnThreadId()), std::nullopt) << "it is the kernel's id already";
  EXPECT_EQ(threads.KernelId(-1), std::nullopt);
  // Memory of the process, with a number that could be a thread's id.
  alignas(16) uint64_t memory[256] = {};
  for (uint64_t& word : memory) word = uint64_t{77} << 32 | 77;
  EXPECT_EQ(threads.KernelId(XSpaceThreads::LineIdOf(reinterpret_cast<uint64_t>(memory))),
            std::nullopt);
}

TEST(XSpaceThreadsTest, WithoutAProcessOrItsMemoryThereIsNone) {
  EXPECT_EQ(XSpaceThreads().KernelId(OwnLineId()), std::nullopt);
  EXPECT_EQ(XSpaceThreads(7, "/nowhere").KernelId(OwnLineId()), std::nullopt);
}

}  // namespace
}  // namespace neurontrace
