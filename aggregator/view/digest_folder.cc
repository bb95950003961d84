// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_folder.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <iterator>
#include <utility>

#include "aggregator/view/digest_tables.h"
#include "lib/base/status.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// Returns the node without its items, sums and tables.
DigestNode Frame(const DigestNode& node) {
  DigestNode frame = node;
  frame.rows.clear();
  frame.names.clear();
  frame.incoming.clear();
  frame.pending.clear();
  frame.items.clear();
  frame.sums = {};
  return frame;
}

// Drops rows and names that no item or span has: coarser digests name only the longest.
absl::StatusOr<DigestNode> WithoutUnusedNames(const DigestNode& node) {
  DigestNode compact = Frame(node);
  DigestTables tables(compact);
  RETURN_IF_ERROR(tables.AddSpans(node, node.incoming, compact.incoming));
  RETURN_IF_ERROR(tables.AddSpans(node, node.pending, compact.pending));
  RETURN_IF_ERROR(tables.AddItems(node));
  return compact;
}

}  // namespace

void DigestFolder::Merge(const DigestItem& item, bool is_counter, DigestItem& into) {
  into.end_ns = std::max(into.end_ns, item.end_ns);
  into.count += item.count;
  into.flags |= item.flags;
  const auto value = [](const DigestItem& of) {
    return std::bit_cast<float>(static_cast<uint32_t>(of.longest_ns));
  };
  const bool is_greater =
      is_counter ? value(item) > value(into) : item.longest_ns > into.longest_ns;
  if (!is_greater) return;
  into.longest_ns = item.longest_ns;
  into.name = item.name;
}

void DigestFolder::Add(const DigestItem& item) {
  if (item.row >= rows_.size()) rows_.resize(item.row + 1);
  Row& row = rows_[item.row];
  const bool is_counter = node_.rows[item.row].is_counter();
  while (!row.wide_ends.empty() && row.wide_ends.front() <= item.start_ns) {
    std::pop_heap(row.wide_ends.begin(), row.wide_ends.end(), std::greater<>());
    row.wide_ends.pop_back();
    ++row.epoch;
  }
  // As SpanCollector places levels. Values of counters share one.
  size_t at = 0;
  while (!is_counter && at < row.levels.size() && row.levels[at].end_ns > item.start_ns) ++at;
  if (at == limits::kViewDepthMax) --at;
  if (at == row.levels.size()) row.levels.emplace_back();
  Level& level = row.levels[at];
  level.end_ns = std::max(level.end_ns, item.end_ns);
  const bool is_wide = item.end_ns - item.start_ns >= node_.width_ns;
  const uint64_t bin = item.start_ns / node_.width_ns;
  const bool has_room = !is_wide && level.bin == bin && level.epoch == row.epoch &&
                        node_.items[level.item].count <= UINT32_MAX - item.count;
  if (has_room) return Merge(item, is_counter, node_.items[level.item]);
  if (is_wide) {
    row.wide_ends.push_back(item.end_ns);
    std::push_heap(row.wide_ends.begin(), row.wide_ends.end(), std::greater<>());
    ++row.epoch;
  }
  level.bin = is_wide ? UINT64_MAX : bin;
  level.epoch = row.epoch;
  level.item = node_.items.size();
  node_.items.push_back(item);
}

DigestNode FoldDigest(DigestNode node, uint64_t width_ns) {
  assert(width_ns >= node.width_ns);
  std::vector<DigestItem> items;
  std::swap(items, node.items);
  node.width_ns = width_ns;
  DigestFolder folder(node);
  for (const DigestItem& item : items) folder.Add(item);
  return node;
}

DigestNode LimitDigest(DigestNode node) {
  while (node.items.size() > limits::kDigestItemsMax && node.width_ns < kDigestWidthMax) {
    node = FoldDigest(std::move(node), node.width_ns * 2);
  }
  return node;
}

absl::StatusOr<DigestNode> JoinDigests(const std::vector<DigestNode>& nodes) {
  assert(!nodes.empty());
  DigestNode joined = Frame(nodes.front());
  for (const DigestNode& node : nodes) {
    assert(&node == &nodes.front() || node.first == joined.until);
    joined.width_ns = std::max(joined.width_ns, node.width_ns);
    joined.begin_ns = std::min(joined.begin_ns, node.begin_ns);
    if (&node == &nodes.front()) continue;
    joined.until = node.until;
    joined.end_ns = std::max(joined.end_ns, node.end_ns);
    joined.chunks += node.chunks;
    joined.unreadable_chunks += node.unreadable_chunks;
    joined.lost_until_ns = std::max(joined.lost_until_ns, node.lost_until_ns);
    joined.chain_lost_ns = node.chain_lost_ns;
    joined.is_late |= node.is_late;
    joined.has_open |= node.has_open;
    joined.complete_at = std::max(joined.complete_at, node.complete_at);
    joined.open_from = std::min(joined.open_from, node.open_from);
    joined.bin_ns = std::max(joined.bin_ns, node.bin_ns);
    joined.covered_until_ns = node.covered_until_ns;
  }
  DigestTables tables(joined);
  std::vector<DigestSpan> incoming;
  for (const DigestNode& node : nodes) {
    RETURN_IF_ERROR(tables.AddSpans(node, node.incoming, incoming));
    RETURN_IF_ERROR(tables.AddItems(node));
  }
  // Those that begin in an earlier one of the nodes have an item in it.
  std::ranges::copy_if(incoming, std::back_inserter(joined.incoming),
                       [&](const DigestSpan& span) { return span.start_ns < joined.begin_ns; });
  RETURN_IF_ERROR(tables.AddSpans(nodes.back(), nodes.back().pending, joined.pending));
  // Chunks may overlap, and with them the digests.
  std::ranges::stable_sort(joined.items, [](const DigestItem& a, const DigestItem& b) {
    return std::pair(a.start_ns, b.end_ns) < std::pair(b.start_ns, a.end_ns);
  });
  const auto coarser = [](uint64_t width_ns) {
    return std::min(width_ns, kDigestWidthMax / kDigestFanOut) * kDigestFanOut;
  };
  const uint64_t width_ns = coarser(joined.width_ns);
  ASSIGN_OR_RETURN(DigestNode result,
                   WithoutUnusedNames(LimitDigest(FoldDigest(std::move(joined), width_ns))));
  result.bin_ns = coarser(result.bin_ns);
  DigestSumsJoiner sums(result.bin_ns);
  for (const DigestNode& node : nodes) sums.Add(node.sums, node.bin_ns);
  result.sums = sums.Take();
  result.bin_ns = LimitSums(result.sums, result.bin_ns);
  result.has_other_names = result.sums.has_other_names();
  return result;
}

}  // namespace neurontrace
