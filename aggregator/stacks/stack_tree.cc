// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_tree.h"

#include <algorithm>
#include <optional>

#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

// Below, nobody is a minority.
constexpr size_t kMembersToDiffer = 3;

bool IsMinority(size_t part, size_t whole) { return whole >= kMembersToDiffer && 2 * part < whole; }

// Returns the child of a node with the most members, the first of equals; nothing at an end.
std::optional<size_t> LargestChild(std::span<const StackTree::Node> nodes, size_t parent) {
  std::optional<size_t> largest;
  const uint32_t depth = nodes[parent].depth + 1;
  for (size_t i = parent + 1; i < nodes.size() && nodes[i].depth >= depth; ++i) {
    if (nodes[i].depth != depth || nodes[i].function.empty()) continue;
    if (!largest || nodes[i].members.size() > nodes[*largest].members.size()) largest = i;
  }
  return largest;
}

}  // namespace

void StackTree::Add(uint32_t member, std::span<const StackThread> threads, uint64_t main_thread) {
  for (const StackThread& thread : threads) {
    const bool is_main = thread.os_thread_id == main_thread;
    Trie* at = &root_;
    at->members.insert(member);
    for (size_t i = 0; i < thread.frames.size(); ++i) {
      const StackFrame& frame = thread.frames[i];
      auto found = at->children.find({frame.function, frame.file});
      if (found == at->children.end()) {
        if (nodes_ >= limits::kStackNodesMax) {
          left_out_ += thread.frames.size() - i;
          break;
        }
        ++nodes_;
        found =
            at->children.try_emplace({frame.function, frame.file}, std::make_unique<Trie>()).first;
      }
      at = found->second.get();
      at->members.insert(member);
      at->is_main = at->is_main || is_main;
    }
    at->ends.insert(member);
  }
}

std::vector<StackTree::Node> StackTree::Nodes() const {
  std::vector<Node> nodes;
  List(root_, 0, false, nodes);
  return nodes;
}

// Recursion is as deep as stacks are: limits::kStackFramesMax.
void StackTree::List(const Trie& trie, uint32_t depth, bool is_below_minority,
                     std::vector<Node>& nodes) {
  using Child = std::pair<const std::pair<std::string, std::string>, std::unique_ptr<Trie>>;
  std::vector<const Child*> children;
  for (const Child& child : trie.children) children.push_back(&child);
  std::stable_sort(children.begin(), children.end(), [](const Child* a, const Child* b) {
    if (a->second->is_main != b->second->is_main) return a->second->is_main;
    return a->second->members.size() > b->second->members.size();
  });
  for (const Child* const child : children) {
    const Trie& below = *child->second;
    const bool is_minority =
        !is_below_minority && IsMinority(below.members.size(), trie.members.size());
    nodes.push_back({.depth = depth,
                     .function = child->first.first,
                     .file = child->first.second,
                     .members = {below.members.begin(), below.members.end()},
                     .is_minority = is_minority,
                     .is_main = below.is_main});
    List(below, depth + 1, is_below_minority || is_minority, nodes);
  }
  // At the root a stack without frames ends, which says nothing.
  const bool ends_as_minority = depth > 0 && !is_below_minority && !trie.ends.empty() &&
                                !children.empty() &&
                                IsMinority(trie.ends.size(), trie.members.size());
  if (!ends_as_minority) return;
  nodes.push_back({.depth = depth,
                   .members = {trie.ends.begin(), trie.ends.end()},
                   .is_minority = true,
                   .is_main = trie.is_main});
}

std::vector<size_t> PathFrom(std::span<const StackTree::Node> nodes, size_t from) {
  std::vector<size_t> path = {from};
  while (const auto next = LargestChild(nodes, path.back())) path.push_back(*next);
  return path;
}

// The first node is a root: of a main thread if there is any, then the largest.
std::vector<size_t> CommonPath(std::span<const StackTree::Node> nodes) {
  std::vector<size_t> path;
  if (nodes.empty()) return path;
  path.push_back(0);
  const size_t all = nodes.front().members.size();
  while (const auto next = LargestChild(nodes, path.back())) {
    if (2 * nodes[*next].members.size() <= all) break;
    path.push_back(*next);
  }
  return path;
}

}  // namespace neurontrace
