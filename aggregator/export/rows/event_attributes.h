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

// One attribute as a file shows it. `text` is used for strings and JSON, `value` for all other
// types. Points into the record or into EventAttributes.
struct EventAttribute {
  std::string_view name;
  ValueType type = ValueType::kNull;
  uint64_t value = 0;
  std::string_view text;
};

// The name of an event and everything that is known of it except for its place and times, under the
// names of docs/formats/json.md. Used by one thread at a time.
class EventAttributes {
 public:
  // `header` must outlive this object.
  void Begin(const TimelineHeader& header);

  // Returns the type of a runtime event, or the name of a framework's event or an annotation.
  std::string_view NameOf(const TimelineRecord& record) const;
  // Returns "neuron_rt" or "neuron_hw", or the category of a framework's event or an annotation.
  std::string_view CategoryOf(const TimelineRecord& record) const;
  // Returns whether the event has a framework's form, as annotations do.
  bool is_framework(const TimelineRecord& record) const {
    return HasFrameworkEvents(header_->streams[record.stream].description.identity.kind);
  }

  // Returns how far the record's start can be from the truth, or nullopt if that is not known.
  std::optional<uint64_t> BoundOf(const TimelineRecord& record) {
    return bounds_ ? bounds_->Of(record) : std::nullopt;
  }

  // How often a prefix may be put before a name that is taken; after that a number is appended.
  static constexpr int kPrefixesMax = 4;

  // Returns the attributes of start and stop, no two with one name. This or Skip must be called
  // once for each record, in the timeline's order. Valid until the next call.
  const std::vector<EventAttribute>& Of(const TimelineRecord& record);
  // Takes the place of Of for a record whose attributes nobody reads: later records may have the
  // name of its model.
  void Skip(const TimelineRecord& record) { models_.Of(record); }
  // Returns the attributes of a kStopAttributes.
  const std::vector<EventAttribute>& ForStop(const TimelineRecord& record);

 private:
  void AddStart(const TimelineRecord& record);
  void AddStop(const Shape& shape, std::span<const uint64_t> values, const TimelineRecord& record);
  void AddModel(const TimelineRecord& record);
  // Adds what this program knows of the record, beside its recorded attributes.
  void AddKnown(const TimelineRecord& record);
  void Add(std::string_view name, const ShapeKey& key, uint64_t value,
           const TimelineRecord& record);
  void Clear();
  // Returns whether an attribute of the record has the name, or only this program may use it.
  bool IsReserved(std::string_view name);
  // Returns the name with `before` in front of it as often as necessary, up to kPrefixesMax times,
  // and with a number appended if that is not enough.
  std::string_view Renamed(std::string_view name, std::string_view before);

  const TimelineHeader* header_ = nullptr;
  std::optional<RecordBounds> bounds_;  // nullopt: nothing is said of clocks
  ModelNames models_;
  std::vector<EventAttribute> attributes_;
  // Names made for the current record; a deque, because attributes_ points into it.
  std::deque<std::string> names_;
  // The names of the first taken_of_ elements of attributes_, filled only if there are many.
  absl::flat_hash_set<std::string_view> taken_;
  size_t taken_of_ = 0;
  size_t last_number_ = 1;  // the suffix of a name of the current record
};

// Returns whether an attribute of a counter event is one of its values.
bool IsCounterValue(const ShapeKey& key);

}  // namespace neurontrace
