// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "absl/container/flat_hash_map.h"
#include "aggregator/store/stored_bytes.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr uint8_t kFlagsMax = kViewOpen | kViewStartLost | kViewNoBound;

void WriteRow(const DigestRow& row, StoredBytesWriter& out) {
  out.Uint(static_cast<uint64_t>(row.source));
  out.Uint(row.thread_id);
  out.Bool(row.core.has_value());
  if (row.core) out.Uint(*row.core);
  out.String(row.counter);
  out.String(row.counter_key);
}

DigestRow ReadRow(StoredBytesReader& in) {
  DigestRow row;
  row.source = in.EnumUpTo(RowSource::kFramework);
  row.thread_id = in.Uint();
  if (in.Bool()) row.core = in.Uint();
  row.counter = in.Bytes();
  row.counter_key = in.Bytes();
  return row;
}

void WriteSpans(const std::vector<DigestSpan>& spans, StoredBytesWriter& out) {
  out.Uint(spans.size());
  for (const DigestSpan& span : spans) {
    out.Uint(span.type_hash);
    out.Uint(span.start_ns);
    out.Uint(span.stop_ns);
    out.Uint(span.row);
    out.Uint(span.name);
    out.Uint(span.flags);
  }
}

std::vector<DigestSpan> ReadSpans(StoredBytesReader& in) {
  constexpr size_t kSpanBytesMin = 6;
  std::vector<DigestSpan> spans(in.Count(kSpanBytesMin));
  for (DigestSpan& span : spans) {
    span.type_hash = in.Uint();
    span.start_ns = in.Uint();
    span.stop_ns = in.Uint();
    span.row = in.Uint32();
    span.name = in.Uint32();
    span.flags = static_cast<uint8_t>(in.Uint() & kFlagsMax);
  }
  return spans;
}

// Items of one row, name and flags are frequent: each such combination has a number, and an item
// that number, so that most items take eight bytes.
struct ItemKind {
  uint32_t row = 0;
  uint32_t name = 0;
  uint8_t flags = 0;
  friend bool operator==(const ItemKind&, const ItemKind&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ItemKind& kind) {
    return H::combine(std::move(h), kind.row, kind.name, kind.flags);
  }
};

bool HasParts(const DigestNode& node, uint32_t row, uint32_t name) {
  return row < node.rows.size() && name < node.names.size();
}

bool HasParts(const DigestNode& node, const std::vector<DigestSpan>& spans) {
  return std::ranges::all_of(spans, [&](const DigestSpan& span) {
    return HasParts(node, span.row, span.name) && span.stop_ns >= span.start_ns;
  });
}

}  // namespace

std::string EncodeDigestItems(const DigestNode& node) {
  absl::flat_hash_map<ItemKind, uint64_t> numbers;
  std::vector<ItemKind> kinds;
  std::vector<uint64_t> kind_of;
  for (const DigestItem& item : node.items) {
    const ItemKind kind{item.row, item.name, item.flags};
    const auto [known, is_new] = numbers.try_emplace(kind, kinds.size());
    if (is_new) kinds.push_back(kind);
    kind_of.push_back(known->second);
  }
  StoredBytesWriter out(kDigestVersion);
  out.Uint(kinds.size());
  for (const ItemKind& kind : kinds) {
    out.Uint(kind.row);
    out.Uint(kind.name);
    out.Uint(kind.flags);
  }
  out.Uint(node.items.size());
  uint64_t before_ns = 0;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const DigestItem& item = node.items[i];
    assert(item.start_ns >= before_ns && item.end_ns >= item.start_ns && item.count > 0);
    out.Uint(item.start_ns - before_ns);
    // An open end is far away: zero and a length of its own would cost more than the bit.
    const bool is_open = item.end_ns == DigestItem::kOpenEnd;
    out.Uint(is_open ? 0 : item.end_ns - item.start_ns + 1);
    out.Uint(item.count);
    out.Uint(item.longest_ns);
    out.Uint(kind_of[i]);
    before_ns = item.start_ns;
  }
  return out.Take();
}

std::string EncodeDigestHead(const DigestNode& node) {
  StoredBytesWriter out(kDigestVersion);
  out.Uint(node.first);
  out.Uint(node.until);
  out.Uint(node.width_ns);
  out.Uint(node.begin_ns);
  out.Uint(node.end_ns);
  out.Uint(node.chunks);
  out.Uint(node.unreadable_chunks);
  out.Uint(node.lost_until_ns);
  out.Uint(node.chain_lost_ns);
  out.Bool(node.is_late);
  out.Bool(node.has_open);
  out.Uint(node.complete_at);
  out.Uint(node.open_from);
  out.Uint(node.bin_ns);
  out.Bool(node.has_other_names);
  for (const uint64_t covered_ns : node.covered_before_ns) out.Uint(covered_ns);
  for (const uint64_t covered_ns : node.covered_until_ns) out.Uint(covered_ns);
  out.Uint(node.rows.size());
  for (const DigestRow& row : node.rows) WriteRow(row, out);
  out.Uint(node.names.size());
  for (const DigestName& name : node.names) {
    out.String(name.first);
    out.String(name.second);
  }
  WriteSpans(node.incoming, out);
  WriteSpans(node.pending, out);
  return out.Take();
}

absl::StatusOr<DigestNode> DecodeDigestHead(std::string_view value) {
  StoredBytesReader in(value);
  if (in.Uint() != kDigestVersion) return DataLoss("a digest of another version");
  DigestNode node;
  node.first = in.Uint();
  node.until = in.Uint();
  node.width_ns = in.Uint();
  node.begin_ns = in.Uint();
  node.end_ns = in.Uint();
  node.chunks = in.Uint();
  node.unreadable_chunks = in.Uint();
  node.lost_until_ns = in.Uint();
  node.chain_lost_ns = in.Uint();
  node.is_late = in.Bool();
  node.has_open = in.Bool();
  node.complete_at = in.Uint();
  node.open_from = in.Uint();
  node.bin_ns = in.Uint();
  node.has_other_names = in.Bool();
  for (uint64_t& covered_ns : node.covered_before_ns) covered_ns = in.Uint();
  for (uint64_t& covered_ns : node.covered_until_ns) covered_ns = in.Uint();
  constexpr size_t kRowBytesMin = 5;
  node.rows.resize(in.Count(kRowBytesMin));
  for (DigestRow& row : node.rows) row = ReadRow(in);
  node.names.resize(in.Count(2));
  for (DigestName& name : node.names) {
    name.first = in.Bytes();
    name.second = in.Bytes();
  }
  node.incoming = ReadSpans(in);
  node.pending = ReadSpans(in);
  const bool is_valid = in.Finished() && node.until > node.first &&
                        std::has_single_bit(node.width_ns) && node.width_ns <= kDigestWidthMax &&
                        std::has_single_bit(node.bin_ns) && node.bin_ns >= kDigestBinWidths &&
                        node.bin_ns <= kDigestWidthMax && HasParts(node, node.incoming) &&
                        HasParts(node, node.pending);
  if (!is_valid) return DataLoss("a malformed digest");
  return node;
}

absl::Status DecodeDigestItems(std::string_view value, DigestNode& node) {
  StoredBytesReader in(value);
  if (in.Uint() != kDigestVersion) return DataLoss("digest items of another version");
  std::vector<ItemKind> kinds(in.Count(3));
  for (ItemKind& kind : kinds) {
    kind.row = in.Uint32();
    kind.name = in.Uint32();
    kind.flags = static_cast<uint8_t>(in.Uint() & kFlagsMax);
    if (!HasParts(node, kind.row, kind.name)) return DataLoss("malformed digest items");
  }
  constexpr size_t kItemBytesMin = 5;
  node.items.resize(in.Count(kItemBytesMin));
  uint64_t before_ns = 0;
  for (DigestItem& item : node.items) {
    item.start_ns = before_ns + in.Uint();
    const uint64_t length = in.Uint();
    item.end_ns = length == 0 ? DigestItem::kOpenEnd : item.start_ns + length - 1;
    item.count = in.Uint32();
    item.longest_ns = in.Uint();
    const uint64_t kind = in.Uint();
    if (!in.ok() || item.start_ns < before_ns || item.end_ns < item.start_ns || item.count == 0 ||
        kind >= kinds.size()) {
      return DataLoss("malformed digest items");
    }
    item.row = kinds[kind].row;
    item.name = kinds[kind].name;
    item.flags = kinds[kind].flags;
    before_ns = item.start_ns;
  }
  return in.Finished() ? absl::OkStatus() : DataLoss("malformed digest items");
}

}  // namespace neurontrace
