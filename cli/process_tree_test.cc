// SPDX-License-Identifier: Apache-2.0
#include "cli/process_tree.h"

#include <gtest/gtest.h>

#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

constexpr char kRuntime[] = "7f00-7f01 r-xp 0 08:01 1 /opt/aws/neuron/lib/libnrt.so.1\n";
constexpr char kTap[] = "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libneurontrace_tap.so\n";

class ProcessTreeTest : public testing::Test {
 protected:
  FakeHostView host_;
  ProcessTree tree_{host_, "/proc", 10};
};

TEST_F(ProcessTreeTest, SeesOnlyDescendants) {
  host_.PutProcess(10, 1, "sh", kTap);
  host_.PutProcess(11, 10, "python (x) S 4", kTap);
  host_.PutProcess(12, 11, "python", std::string(kTap) + kRuntime);
  host_.PutProcess(20, 1, "other", kRuntime);
  tree_.Scan();
  EXPECT_TRUE(tree_.has_seen_tap());
  EXPECT_TRUE(tree_.has_seen_runtime());
  EXPECT_TRUE(tree_.untapped().empty());
  EXPECT_TRUE(tree_.Has(12));
  EXPECT_TRUE(tree_.Has(10));
  EXPECT_FALSE(tree_.Has(20));
  EXPECT_FALSE(tree_.Has(1));
}

TEST_F(ProcessTreeTest, NamesProcessesWithRuntimeAndNoTap) {
  host_.PutProcess(10, 1, "sh", kTap);
  host_.PutProcess(12, 10, "python", kRuntime);
  tree_.Scan();
  ASSERT_EQ(tree_.untapped().size(), 1u);
  EXPECT_EQ(tree_.untapped()[0].pid, 12u);
  EXPECT_EQ(tree_.untapped()[0].name, "python");
  // It is remembered when it has gone, and forgotten when the tap is there after all.
  tree_.Scan();
  EXPECT_EQ(tree_.untapped().size(), 1u);
  host_.PutProcess(12, 10, "python", std::string(kTap) + kRuntime);
  tree_.Scan();
  EXPECT_TRUE(tree_.untapped().empty());
}

// A look may come between a process's start and the end of its loader's work.
TEST_F(ProcessTreeTest, IsLoadedOnceTheCLibraryIsMapped) {
  host_.PutProcess(10, 1, "sh", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/ld-linux-x86-64.so.2\n");
  tree_.Scan();
  EXPECT_FALSE(tree_.has_seen_loaded());
  host_.PutProcess(10, 1, "sh", "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libc.so.6\n");
  tree_.Scan();
  EXPECT_TRUE(tree_.has_seen_loaded());
  host_.PutProcess(10, 1, "sh", "");  // it has ended
  tree_.Scan();
  EXPECT_TRUE(tree_.has_seen_loaded());
}

TEST_F(ProcessTreeTest, IgnoresUnreadableProcesses) {
  host_.PutProcess(10, 1, "sh", "");
  host_.PutFile("/proc/10/stat", "nonsense");
  host_.PutFile("/proc/self/maps", kRuntime);
  tree_.Scan();
  EXPECT_FALSE(tree_.has_seen_tap());
  EXPECT_FALSE(tree_.has_seen_runtime());
}

}  // namespace
}  // namespace neurontrace::cli
