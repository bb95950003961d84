// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "aggregator/export/exporter.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"

namespace neurontrace {

// One attribute as a file shows it. `text` is of strings and JSON, `value` of all else.
struct EventAttribute {
  std::string_view name;
  ValueType type = ValueType::kNull;
  uint64_t value = 0;
  std::string_view text;
};

// What an event is called and all that is known of it besides its place and times, under the names
// of docs/formats/json.md. One thread at a time.
class EventAttributes {
 public:
  void Begin(const TimelineHeader& header);  // which must outlive it

  // The type of a runtime event, the name of a framework's.
  std::string_view NameOf(const TimelineRecord& record) const;
  // "neuron_rt", "neuron_hw"; of framework events their category.
  std::string_view CategoryOf(const TimelineRecord& record) const;
  bool is_framework(const TimelineRecord& record) const {
    return header_->streams[record.stream].description.identity.kind == StreamKind::kFramework;
  }

  // How often a name gets its prefix before it.
  static constexpr int kPrefixesMax = 4;

  // Those of start and stop; to be called once for each record, in their order. Valid until the
  // next call.
  const std::vector<EventAttribute>& Of(const TimelineRecord& record);
  // Those of kStopAttributes.
  const std::vector<EventAttribute>& OfStop(const TimelineRecord& record);

 private:
  void AddStart(const TimelineRecord& record);
  void AddStop(const Shape& shape, std::span<const uint64_t> values, const TimelineRecord& record);
  void AddModel(const TimelineRecord& record);
  void AddKnown(const TimelineRecord& record);
  void Add(std::string_view name, const ShapeKey& key, uint64_t value,
           const TimelineRecord& record);
  void Clear();
  bool IsTaken(std::string_view name);
  // With `before` before it, up to kPrefixesMax times, and a number behind where that is not
  // enough.
  std::string_view Renamed(std::string_view name, std::string_view before);

  const TimelineHeader* header_ = nullptr;
  std::optional<RecordBounds> bounds_;  // nullopt: nothing is said of clocks
  ModelNames models_;
  std::vector<EventAttribute> attributes_;
  std::deque<std::string> names_;  // those made for the record at hand
  // The names of the first so many of attributes_, where there are many.
  absl::flat_hash_set<std::string_view> taken_;
  size_t taken_of_ = 0;
  size_t last_number_ = 1;  // the suffix of a name of the current record
};

// True where an attribute of a counter event is one of its values.
bool IsCounterValue(const ShapeKey& key);

}  // namespace neurontrace
