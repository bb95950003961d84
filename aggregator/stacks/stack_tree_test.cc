// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StackThread Thread(const std::vector<std::string>& functions, uint64_t id = 1) {
  StackThread thread{.os_thread_id = id};
  for (const std::string& function : functions) thread.frames.push_back({function, "a.py", 1});
  return thread;
}

// "0 train 0,1,2", with a * behind what is odd.
std::vector<std::string> Lines(const StackTree& tree) {
  std::vector<std::string> lines;
  for (const StackTree::Node& node : tree.Nodes()) {
    std::string members;
    for (const uint32_t member : node.members) members += fmt::format(" {}", member);
    lines.push_back(fmt::format("{} {}:{}{}", node.depth, node.function, members,
                                node.is_minority ? " *" : ""));
  }
  return lines;
}

TEST(StackTree, MarksWhereAMinorityDiffersFirst) {
  StackTree tree;
  for (const uint32_t member : {0, 1, 3}) {
    tree.Add(member, std::vector{Thread({"main", "train", "all_reduce", "wait"})}, 1);
  }
  tree.Add(2, std::vector{Thread({"main", "train", "load", "read"})}, 1);
  EXPECT_THAT(Lines(tree), ElementsAre("0 main: 0 1 2 3", "1 train: 0 1 2 3", "2 all_reduce: 0 1 3",
                                       "3 wait: 0 1 3", "2 load: 2 *", "3 read: 2"));
  const std::vector<StackTree::Node> nodes = tree.Nodes();
  EXPECT_THAT(CommonPath(nodes), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(PathFrom(nodes, 4), ElementsAre(4, 5));
}

TEST(StackTree, MarksStacksThatEndEarly) {
  StackTree tree;
  for (const uint32_t member : {0, 1}) tree.Add(member, std::vector{Thread({"main", "wait"})}, 1);
  tree.Add(2, std::vector{Thread({"main"})}, 1);
  EXPECT_THAT(Lines(tree), ElementsAre("0 main: 0 1 2", "1 wait: 0 1", "1 : 2 *"));
}

TEST(StackTree, NobodyIsAMinorityOfTwo) {
  StackTree tree;
  tree.Add(0, std::vector{Thread({"main", "a"})}, 1);
  tree.Add(1, std::vector{Thread({"main", "b"})}, 1);
  EXPECT_THAT(Lines(tree), ElementsAre("0 main: 0 1", "1 a: 0", "1 b: 1"));
  EXPECT_THAT(CommonPath(tree.Nodes()), ElementsAre(0));
}

TEST(StackTree, MainThreadsComeFirst) {
  StackTree tree;
  for (const uint32_t member : {0, 1, 2}) {
    tree.Add(member, std::vector{Thread({"bootstrap", "loader"}, 5)}, 1);
  }
  tree.Add(3, std::vector{Thread({"main", "train"}, 1), Thread({"bootstrap", "loader"}, 5)}, 1);
  EXPECT_THAT(Lines(tree), ElementsAre("0 main: 3 *", "1 train: 3", "0 bootstrap: 0 1 2 3",
                                       "1 loader: 0 1 2 3"));
}

TEST(StackTree, FunctionsOfDifferentFilesDiffer) {
  StackTree tree;
  StackThread other = Thread({"main"});
  other.frames[0].file = "b.py";
  tree.Add(0, std::vector{Thread({"main"})}, 1);
  tree.Add(1, std::vector{other}, 1);
  EXPECT_THAT(Lines(tree), ElementsAre("0 main: 0", "0 main: 1"));
}

TEST(StackTree, EmptyWithoutStacks) {
  StackTree tree;
  tree.Add(0, {}, 1);
  EXPECT_THAT(tree.Nodes(), IsEmpty());
  EXPECT_THAT(CommonPath(tree.Nodes()), IsEmpty());
}

TEST(StackTree, CountsWhatIsBeyondItsLimit) {
  StackTree tree;
  constexpr size_t kThreads = limits::kStackNodesMax / 2 + 10;
  for (uint32_t i = 0; i < kThreads; ++i) {
    tree.Add(0, std::vector{Thread({fmt::format("f{}", i), "g"})}, 1);
  }
  EXPECT_EQ(tree.Nodes().size(), limits::kStackNodesMax);
  EXPECT_EQ(tree.left_out(), 20u);
}

// Random stacks from few names, so that many are shared.
std::vector<std::vector<StackThread>> RandomMembers(std::mt19937& random) {
  std::vector<std::vector<StackThread>> members(1 + random() % 12);
  for (std::vector<StackThread>& threads : members) {
    threads.resize(random() % 4);
    for (size_t i = 0; i < threads.size(); ++i) {
      std::vector<std::string> functions(1 + random() % 6);
      for (std::string& function : functions) function = std::string(1, 'a' + random() % 3);
      threads[i] = Thread(functions, 1 + i);
    }
  }
  return members;
}

TEST(StackTree, DoesNotDependOnTheOrderOfMembers) {
  std::mt19937 random(4711);
  for (int round = 0; round < 300; ++round) {
    const auto members = RandomMembers(random);
    std::vector<uint32_t> order(members.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    StackTree first;
    for (const uint32_t i : order) first.Add(i, members[i], 1);
    std::shuffle(order.begin(), order.end(), random);
    StackTree second;
    for (const uint32_t i : order) second.Add(i, members[i], 1);
    EXPECT_EQ(Lines(first), Lines(second));
  }
}

// A node has just the members that have a stack through it, so that the members of its children are
// among its own, and each member of it is in a child or ends there.
TEST(StackTree, SetsAddUp) {
  std::mt19937 random(815);
  for (int round = 0; round < 300; ++round) {
    const auto members = RandomMembers(random);
    StackTree tree;
    std::map<std::vector<std::string>, std::set<uint32_t>> expected;  // by path
    for (uint32_t i = 0; i < members.size(); ++i) {
      tree.Add(i, members[i], 1);
      for (const StackThread& thread : members[i]) {
        std::vector<std::string> path;
        for (const StackFrame& frame : thread.frames) {
          path.push_back(frame.function);
          expected[path].insert(i);
        }
      }
    }
    std::vector<std::string> path;
    size_t nodes = 0;
    size_t minority_depth = SIZE_MAX;
    for (const StackTree::Node& node : tree.Nodes()) {
      path.resize(node.depth);
      if (minority_depth != SIZE_MAX && node.depth > minority_depth) {
        EXPECT_FALSE(node.is_minority) << "only the first divergence is odd";
      } else {
        minority_depth = node.is_minority ? node.depth : SIZE_MAX;
      }
      if (node.function.empty()) continue;
      path.push_back(node.function);
      ++nodes;
      EXPECT_THAT(node.members, ::testing::ElementsAreArray(expected[path]));
    }
    EXPECT_EQ(nodes, expected.size());
  }
}

}  // namespace
}  // namespace neurontrace
