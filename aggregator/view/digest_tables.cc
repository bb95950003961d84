// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_tables.h"

#include <optional>

#include "lib/base/status.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

absl::StatusOr<uint32_t> DigestTables::RowNumber(const DigestRow& row) {
  const auto known = rows_.find(row);
  if (known != rows_.end()) return known->second;
  if (node_.rows.size() >= limits::kViewRowsMax) {
    return ResourceExhausted("a digest has {} rows, which is the limit", limits::kViewRowsMax);
  }
  node_.rows.push_back(row);
  return rows_[row] = static_cast<uint32_t>(node_.rows.size() - 1);
}

uint32_t DigestTables::NameNumber(const DigestName& name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  if (node_.names.size() >= limits::kViewNamesMax) return limits::kViewNamesMax - 1;
  const bool is_last = node_.names.size() == limits::kViewNamesMax - 1;
  node_.names.push_back(is_last ? DigestName("(other)", "") : name);
  const auto number = static_cast<uint32_t>(node_.names.size() - 1);
  if (!is_last) names_.emplace(name, number);
  return number;
}

absl::Status DigestTables::AddSpans(const DigestNode& from, const std::vector<DigestSpan>& spans,
                                    std::vector<DigestSpan>& out) {
  for (DigestSpan span : spans) {
    ASSIGN_OR_RETURN(span.row, RowNumber(from.rows[span.row]));
    span.name = NameNumber(from.names[span.name]);
    out.push_back(span);
  }
  return absl::OkStatus();
}

// Each row and name is looked up once, when its first item comes: the numbers depend on that order.
absl::Status DigestTables::AddItems(const DigestNode& from) {
  std::vector<std::optional<uint32_t>> row_of(from.rows.size());
  std::vector<std::optional<uint32_t>> name_of(from.names.size());
  node_.items.reserve(node_.items.size() + from.items.size());
  for (DigestItem item : from.items) {
    std::optional<uint32_t>& row = row_of[item.row];
    if (!row) {
      ASSIGN_OR_RETURN(row, RowNumber(from.rows[item.row]));
    }
    std::optional<uint32_t>& name = name_of[item.name];
    if (!name) name = NameNumber(from.names[item.name]);
    item.row = *row;
    item.name = *name;
    node_.items.push_back(item);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
