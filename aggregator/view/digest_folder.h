// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/view/digest.h"

namespace neurontrace {

// Merges items, which come in the order of their starts, until none but wide ones and one for each
// row, level and stretch of `width_ns` are left.
//
// Levels are those that a reader of the single events would give them, counted without spans of
// earlier chunks. A stretch is divided where a wide span begins or ends, so that the merged items
// take the places of their events whatever else is on the row: the depth of a row does not depend
// on the resolution. Used by one thread at a time.
class DigestFolder {
 public:
  // Times in `node` are those of its items; those added are appended to it.
  explicit DigestFolder(DigestNode& node) : node_(node) {}
  void Add(const DigestItem& item);

 private:
  struct Level {
    uint64_t end_ns = 0;
    uint64_t bin = UINT64_MAX;  // of the latest item if it can be merged with
    uint64_t epoch = 0;
    size_t item = 0;
  };
  struct Row {
    std::vector<Level> levels;
    std::vector<uint64_t> wide_ends;  // min-heap
    uint64_t epoch = 0;               // changes when a wide span begins or ends
  };
  static void Merge(const DigestItem& item, bool is_counter, DigestItem& into);

  DigestNode& node_;
  std::vector<Row> rows_;
};

// Returns the node with items merged at `width_ns`, which must not be less than its own.
DigestNode FoldDigest(DigestNode node, uint64_t width_ns);
// Returns one digest for consecutive ones of a stream. Its width is kDigestFanOut times the
// greatest of theirs, or more if it would have too many items. Fails as DigestTables does.
absl::StatusOr<DigestNode> JoinDigests(const std::vector<DigestNode>& nodes);
// Doubles the width until at most limits::kDigestItemsMax items are left.
DigestNode LimitDigest(DigestNode node);

}  // namespace neurontrace
