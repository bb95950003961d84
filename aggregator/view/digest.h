// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/export/row_source.h"
#include "aggregator/view/digest_sums.h"

namespace neurontrace {

// A changed encoding, or another choice of what is merged, gets the next number: digests with
// another one are not used, and are made again.
inline constexpr uint64_t kDigestVersion = 2;
// Level 0 covers this many consecutive sequences of a stream, each further level kDigestFanOut
// times as many.
inline constexpr uint64_t kDigestBaseChunks = 8;
inline constexpr uint64_t kDigestFanOut = 16;
inline constexpr uint8_t kDigestLevels = 4;
// A digest is three values of the store: its head under its level, its items and its sums under
// levels higher by these.
inline constexpr uint8_t kDigestItemsLevel = 16;
inline constexpr uint8_t kDigestSumsLevel = 32;
// Bins of sums are this many times as wide as items are at least.
inline constexpr uint64_t kDigestBinWidths = 2;
// Longer than any capture, with room for the arithmetic of coarser widths.
inline constexpr uint64_t kDigestWidthMax = uint64_t{1} << 62;
// Returns how many sequences a digest of the level covers. Pure.
constexpr uint64_t DigestChunks(uint8_t level) {
  uint64_t chunks = kDigestBaseChunks;
  for (uint8_t i = 0; i < level; ++i) chunks *= kDigestFanOut;
  return chunks;
}

// What identifies a row within its stream, whatever its name is: names depend on ranks, which may
// become known later.
struct DigestRow {
  RowSource source = RowSource::kRuntime;
  uint64_t thread_id = 0;
  std::optional<uint64_t> core;
  // Names of the counter and of its value's key; empty for rows of events.
  std::string counter;
  std::string counter_key;

  bool is_counter() const { return !counter.empty(); }
  friend bool operator==(const DigestRow&, const DigestRow&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DigestRow& row) {
    return H::combine(std::move(h), row.source, row.thread_id, row.core, row.counter,
                      row.counter_key);
  }
};

// One event, or several of one row and level that are narrower than the digest's width and begin in
// one stretch of that width. Times are raw.
struct DigestItem {
  static constexpr uint64_t kOpenEnd = UINT64_MAX;  // it ends where its stream ends

  uint64_t start_ns = 0;
  uint64_t end_ns = 0;      // of several events the latest one
  uint64_t longest_ns = 0;  // of the events; of a counter the bits of its highest value, a float
  uint32_t count = 1;
  uint32_t row = 0;   // index into DigestNode::rows
  uint32_t name = 0;  // index into DigestNode::names; of several events the longest one's
  uint8_t flags = 0;  // kViewOpen, kViewStartLost, kViewNoBound
  friend bool operator==(const DigestItem&, const DigestItem&) = default;
};

// A span whose stop is in a later chunk.
struct DigestSpan {
  uint64_t type_hash = 0;  // HashEventType
  uint64_t start_ns = 0;
  uint64_t stop_ns = 0;
  uint32_t row = 0;
  uint32_t name = 0;
  uint8_t flags = 0;
  friend bool operator==(const DigestSpan&, const DigestSpan&) = default;
};

// Everything that the page needs of consecutive chunks of one stream at a limited resolution: each
// event that begins in them is in exactly one item. Spans of at least `width_ns` are items of their
// own. A plain value; times are raw nanoseconds of the stream.
struct DigestNode {
  // The sequences covered: [first, until).
  uint64_t first = 0;
  uint64_t until = 0;
  uint64_t width_ns = 1;  // a power of two
  // First and last event; UINT64_MAX and 0 without events.
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  uint64_t chunks = 0;  // with events
  uint64_t unreadable_chunks = 0;
  // The latest stop without a start, 0 if there is none. A later chunk that begins before it may
  // have that start: then neither may be taken from a digest.
  uint64_t lost_until_ns = 0;
  // The latest of those up to this digest, and whether these chunks begin before one of them.
  uint64_t chain_lost_ns = 0;
  bool is_late = false;
  // Whether a span is open here whose stop may still come, beyond the sequence `complete_at`.
  bool has_open = false;
  uint64_t complete_at = 0;
  // `first` of the earliest such digest up to this one; UINT64_MAX if there is none.
  uint64_t open_from = UINT64_MAX;
  uint64_t bin_ns = kDigestBinWidths;  // of `sums`, a power of two
  bool has_other_names = false;        // DigestSums::has_other_names
  // How far earlier digests cover, and how far these and this one do.
  DigestCoverTimes covered_before_ns = {};
  DigestCoverTimes covered_until_ns = {};
  std::vector<DigestRow> rows;
  std::vector<DigestName> names;
  // Spans from before `begin_ns` that end in these chunks, and spans of this or an earlier digest
  // that end in later chunks.
  std::vector<DigestSpan> incoming;
  std::vector<DigestSpan> pending;
  std::vector<DigestItem> items;  // in the order of their starts
  DigestSums sums;

  bool is_full(uint8_t level) const { return until % DigestChunks(level) == 0; }
};

// Encode everything but items and sums, and the items. EncodeDigestSums encodes the sums.
std::string EncodeDigestHead(const DigestNode& node);
std::string EncodeDigestItems(const DigestNode& node);
// Decodes a head. Fails with DATA_LOSS for a digest of another version, or bytes that
// EncodeDigestHead does not write.
absl::StatusOr<DigestNode> DecodeDigestHead(std::string_view value);
// Decodes the items of the node that DecodeDigestHead returned. Fails as that does.
absl::Status DecodeDigestItems(std::string_view value, DigestNode& node);

}  // namespace neurontrace
