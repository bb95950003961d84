// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/base/number_ranges.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

// Members without a rank that a line names.
constexpr size_t kProcessesNamed = 4;

// Returns "gid 0-3,5, i-01 pid 7": the ranks of members as ranges, then those without one.
std::string MembersText(const v1::StacksReport& report, const std::vector<uint32_t>& members) {
  std::set<int64_t> gids;
  std::vector<std::string> others;
  for (const uint32_t member : members) {
    const v1::StacksMember& of = report.members(static_cast<int>(member));
    gids.insert(of.worker_gids().begin(), of.worker_gids().end());
    if (of.worker_gids().empty()) {
      others.push_back(fmt::format("{} pid {}", of.instance_id(), of.pid()));
    }
  }
  std::string text;
  if (!gids.empty()) {
    const auto ranges = FindRanges(std::vector(gids.begin(), gids.end()));
    text = "gid " + FormatRanges(ranges, ranges.size(), ",");
  }
  for (size_t i = 0; i < std::min(others.size(), kProcessesNamed); ++i) {
    text += (text.empty() ? "" : ", ") + others[i];
  }
  if (others.size() > kProcessesNamed) {
    text += fmt::format(" and {} more", others.size() - kProcessesNamed);
  }
  return text;
}

std::string FrameText(const StackTree::Node& node) {
  return node.file.empty() ? node.function : fmt::format("{} ({})", node.function, node.file);
}

// Returns the path as text; of a long one the first and the last frames.
std::string PathText(const std::vector<StackTree::Node>& nodes, const std::vector<size_t>& path) {
  std::string text;
  constexpr size_t kShown = limits::kStackLineFramesMax;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path.size() > kShown && i == kShown / 2) {
      i = path.size() - kShown / 2;
      text += fmt::format(" > ({} frames)", path.size() - kShown);
    }
    text += (text.empty() ? "" : " > ") + FrameText(nodes[path[i]]);
  }
  return text;
}

// Returns the node above an odd one, or nullptr at a root.
const StackTree::Node* Above(const std::vector<StackTree::Node>& nodes, size_t index) {
  for (size_t i = index; i-- > 0;) {
    if (nodes[i].depth < nodes[index].depth) return &nodes[i];
  }
  return nullptr;
}

std::string MinorityText(const v1::StacksReport& report, const std::vector<StackTree::Node>& nodes,
                         size_t index) {
  const StackTree::Node* const above = Above(nodes, index);
  std::string text = "odd: " + MembersText(report, nodes[index].members);
  if (above != nullptr) text += " after " + FrameText(*above);
  if (nodes[index].function.empty()) return text + ": ends there";
  return text + ": " + PathText(nodes, PathFrom(nodes, index));
}

// Adds a line for each outcome but TAKEN: who, and the detail of the first.
void AddMissing(const v1::StacksReport& report, std::vector<std::string>& lines) {
  std::map<v1::StacksOutcome, std::vector<uint32_t>> missing;
  for (int i = 0; i < report.members_size(); ++i) {
    const v1::StacksOutcome outcome = report.members(i).outcome();
    if (outcome != v1::STACKS_OUTCOME_TAKEN) missing[outcome].push_back(static_cast<uint32_t>(i));
  }
  for (const auto& [outcome, members] : missing) {
    const std::string& detail = report.members(static_cast<int>(members.front())).detail();
    lines.push_back(fmt::format("not taken: {}: {}{}", MembersText(report, members),
                                StacksOutcomeName(outcome), detail.empty() ? "" : ": " + detail));
  }
}

}  // namespace

std::string StacksOutcomeName(v1::StacksOutcome outcome) {
  if (outcome == v1::STACKS_OUTCOME_UNSPECIFIED) return "pending";
  std::string name = v1::StacksOutcome_Name(outcome);
  name.erase(0, std::string("STACKS_OUTCOME_").size());
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

void FillReport(const StackTree& tree, v1::StacksReport& report) {
  const std::vector<StackTree::Node> nodes = tree.Nodes();
  report.clear_nodes();
  report.clear_lines();
  report.set_nodes_left_out(tree.left_out());
  for (const StackTree::Node& node : nodes) {
    v1::StackNode& message = *report.add_nodes();
    message.set_depth(node.depth);
    message.set_function(node.function);
    message.set_file(node.file);
    message.mutable_members()->Add(node.members.begin(), node.members.end());
    message.set_is_minority(node.is_minority);
    message.set_is_main(node.is_main);
  }
  std::vector<std::string> lines;
  if (const std::vector<size_t> common = CommonPath(nodes); !common.empty()) {
    const std::vector<uint32_t>& members = nodes[common.back()].members;
    lines.push_back(fmt::format("{} of {}: {}: {}", members.size(), report.members_size(),
                                MembersText(report, members), PathText(nodes, common)));
  }
  // Odd main threads first: helper threads come and go.
  for (const bool is_main : {true, false}) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].is_minority && nodes[i].is_main == is_main) {
        lines.push_back(MinorityText(report, nodes, i));
      }
    }
  }
  std::vector<std::string> missing;
  AddMissing(report, missing);
  const size_t room = limits::kStackLinesMax - std::min(limits::kStackLinesMax, missing.size());
  const size_t shown = std::min(lines.size(), room);
  for (size_t i = 0; i < shown; ++i) report.add_lines(lines[i]);
  if (shown < lines.size()) {
    report.add_lines(
        fmt::format("{} more differences are in the merged file", lines.size() - shown));
  }
  for (std::string& line : missing) report.add_lines(std::move(line));
}

}  // namespace neurontrace
