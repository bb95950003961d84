// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/duration_stats.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "aggregator/derive/shape_fields.h"

namespace neurontrace {

// Types are numbered from 1, and 1 is kOther, so that 0 can mean "not looked up yet".
uint32_t DurationStats::TypeOf(const SharedShape& shape) {
  const bool is_kept = shape.number < ShapeFieldTable::kShapesMax;
  // Avoids hashing the name for each event.
  if (is_kept && shape.number < type_of_shape_.size() && type_of_shape_[shape.number] != 0) {
    return type_of_shape_[shape.number];
  }
  if (types_.empty()) types_.emplace(kOther, 1);
  const std::string_view name = shape.shape.event_type;
  const auto known = types_.find(absl::string_view(name.data(), name.size()));
  uint32_t type = 1;
  if (known != types_.end()) {
    type = known->second;
  } else if (types_.size() < kTypesMax) {
    type = static_cast<uint32_t>(types_.size() + 1);
    types_.emplace(name, type);
  }
  if (is_kept) {
    if (shape.number >= type_of_shape_.size()) type_of_shape_.resize(shape.number + 1);
    type_of_shape_[shape.number] = type;
  }
  return type;
}

// Rows are made on first use, for each stream and type.
DurationRow& DurationStats::RowOf(const TimelineRecord& record) {
  // Several shapes may have one type.
  const uint32_t type = TypeOf(*record.shape);
  if (rows_.empty()) rows_.push_back({.event_type = kOther, .stream = kOtherStream});
  if (record.stream >= row_of_.size()) row_of_.resize(record.stream + 1);
  auto& rows = row_of_[record.stream];
  if (type >= rows.size()) rows.resize(type + 1);
  uint32_t& row = rows[type];
  if (row == 0 && rows_.size() < kRowsMax) {
    rows_.push_back({.event_type = type == 1 ? std::string(kOther)
                                             : std::string(record.shape->shape.event_type),
                     .stream = record.stream});
    row = static_cast<uint32_t>(rows_.size());
  }
  // Rows are numbered from 1 for the same reason as types; row 0 is the common one for all beyond
  // kRowsMax.
  if (type == 1 || row == 0) ++overflow_;
  return row == 0 ? rows_.front() : rows_[row - 1];
}

// Only whole spans have a duration; the others are counted by what they lack.
void DurationStats::Take(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    switch (record->kind) {
      case RecordKind::kSpan: {
        DurationRow& row = RowOf(*record);
        if ((record->flags & kOpen) != 0) {
          ++row.open;
        } else if ((record->flags & kStartLost) != 0) {
          ++row.start_lost;
        } else if ((record->flags & kInvalidLength) != 0) {
          ++row.anomalous;
        } else {
          row.spans.Add(record->end_ns - record->start_ns);
        }
        break;
      }
      case RecordKind::kInstant:
      case RecordKind::kOther:
        ++RowOf(*record).instants;
        break;
      case RecordKind::kFlowStart:
      case RecordKind::kFlowStep:
      case RecordKind::kFlowEnd:
      case RecordKind::kCounter:
      case RecordKind::kStopAttributes:
        break;
    }
  }
}

// The common row of the limits is removed if nothing is in it.
std::vector<DurationRow> DurationStats::Finish() {
  std::erase_if(rows_, [](const DurationRow& row) { return row.count() == 0; });
  std::sort(rows_.begin(), rows_.end(), [](const DurationRow& a, const DurationRow& b) {
    return std::tie(a.event_type, a.stream) < std::tie(b.event_type, b.stream);
  });
  return std::move(rows_);
}

}  // namespace neurontrace
