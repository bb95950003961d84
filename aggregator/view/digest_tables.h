// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/view/digest.h"

namespace neurontrace {

// Numbers the rows and names of a digest that is being made.
class DigestTables {
 public:
  // `node` must outlive this; its tables grow.
  explicit DigestTables(DigestNode& node) : node_(node) {}
  // Fails with RESOURCE_EXHAUSTED at limits::kViewRowsMax.
  absl::StatusOr<uint32_t> RowNumber(const DigestRow& row);
  // Names beyond limits::kViewNamesMax share the last number, "(other)".
  uint32_t NameNumber(const DigestName& name);
  // Append spans and items of another digest with the numbers of this one.
  absl::Status AddSpans(const DigestNode& from, const std::vector<DigestSpan>& spans,
                        std::vector<DigestSpan>& out);
  absl::Status AddItems(const DigestNode& from);

 private:
  DigestNode& node_;
  absl::flat_hash_map<DigestRow, uint32_t> rows_;
  absl::flat_hash_map<DigestName, uint32_t> names_;
};

}  // namespace neurontrace
