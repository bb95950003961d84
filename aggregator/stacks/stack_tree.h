// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// The stacks of many workers merged: a trie over `function (file)` from the outermost frame, each
// node with the members that reach it. Lines are not compared, so that a loop is one node. The
// result does not depend on the order of members, unless limits::kStackNodesMax is reached. One
// thread.
class StackTree {
 public:
  // A node of the result; see v1.StackNode.
  struct Node {
    uint32_t depth = 0;
    std::string function;  // empty: the stacks of the members end at the node above
    std::string file;
    std::vector<uint32_t> members;  // ascending
    // Less than half of the members that reach the node above, which is not odd itself: where a
    // minority differs first. Of fewer than three members nobody is odd.
    bool is_minority = false;
    bool is_main = false;  // of a main thread
  };

  // Adds the threads of a member, once for each member. `main_thread` is the id of its process.
  void Add(uint32_t member, std::span<const StackThread> threads, uint64_t main_thread);

  // Returns the nodes depth first. Of the children of a node those of main threads are first, then
  // those with more members, then by name. Ends are listed where they are odd.
  std::vector<Node> Nodes() const;
  // Frames that made no node because there are limits::kStackNodesMax.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Trie {
    std::map<std::pair<std::string, std::string>, std::unique_ptr<Trie>> children;
    std::set<uint32_t> members;
    std::set<uint32_t> ends;  // of them, those with a stack that ends here
    bool is_main = false;
  };
  static void List(const Trie& trie, uint32_t depth, bool is_below_minority,
                   std::vector<Node>& nodes);

  Trie root_;
  size_t nodes_ = 0;
  uint64_t left_out_ = 0;
};

// Returns the path that most members share, as indexes of `nodes`: from the main thread's outermost
// frame on, the child with the most members, while more than half of those at the first node are
// there. Empty without nodes.
std::vector<size_t> CommonPath(std::span<const StackTree::Node> nodes);
// Returns the path from an odd node on, to the end of the stack that most of its members share.
std::vector<size_t> PathFrom(std::span<const StackTree::Node> nodes, size_t from);

}  // namespace neurontrace
