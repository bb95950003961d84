// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/event_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "aggregator/export/clock_report.h"
#include "aggregator/export/row_source.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

// Attributes of framework events that became something else: a row, a length, an arrow.
constexpr std::array<std::string_view, 5> kStructure = {"name", "pid", "tid", "dur_ns", "flow_id"};

// Names that AddKnown uses. A recorded attribute never gets one of them, even in events for which
// AddKnown has no value: a reader could not tell them apart.
constexpr std::array<std::string_view, 8> kKnown = {
    "id", "nrta_seq_id", "open", "start_lost", "clock", "eps_ns", "ts_raw_ns", kOwnTimeKey};

// Up to this number a linear search is faster than hashing.
constexpr size_t kFewAttributes = 16;

// Returns whether the attribute's value is a text of the chunk rather than a number.
bool IsText(ValueType type) { return type == ValueType::kString || type == ValueType::kJson; }

}  // namespace

// Attributes beside the data identify the counter.
bool IsCounterValue(const ShapeKey& key) {
  return key.scope == KeyScope::kData &&
         (key.type == ValueType::kUint || key.type == ValueType::kInt ||
          key.type == ValueType::kDouble);
}

void EventAttributes::Begin(const TimelineHeader& header) {
  header_ = &header;
  for (const EarlierPreparation& earlier : header.earlier) {
    models_.Record(earlier.stream, earlier.exec_id, earlier.model_name);
  }
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  if (clocks.is_aligned() || (header.clock_arguments && !header.raw_clocks)) {
    bounds_.emplace(header.streams);
  }
}

std::string_view EventAttributes::NameOf(const TimelineRecord& record) const {
  if (is_framework(record)) {
    const ShapeKey* key = nullptr;
    const uint64_t* value = FindAttribute(record, KeyScope::kTop, "name", &key);
    if (value != nullptr && key->type == ValueType::kString) return record.text(*value);
  }
  return record.start().event_type;
}

std::string_view EventAttributes::CategoryOf(const TimelineRecord& record) const {
  if (is_framework(record)) return FrameworkCategory(record.start().event_type);
  return ToString(RowSourceOf(record.start().event_type));
}

const std::vector<EventAttribute>& EventAttributes::Of(const TimelineRecord& record) {
  Clear();
  AddKnown(record);
  AddStart(record);
  if (record.has_stop()) AddStop(record.stop(), record.stop_values(), record);
  return attributes_;
}

// Names of the start are not known here: formats rename the stop's attributes when they join both.
const std::vector<EventAttribute>& EventAttributes::ForStop(const TimelineRecord& record) {
  Clear();
  AddStop(record.start(), record.start_values(), record);
  return attributes_;
}

// Comes first, so that no recorded attribute can take these names.
void EventAttributes::AddKnown(const TimelineRecord& record) {
  const auto add = [this](std::string_view name, ValueType type, uint64_t value) {
    attributes_.push_back({name, type, value, {}});
  };
  if ((record.start().present & FieldBit(Field::kId)) != 0) add("id", ValueType::kUint, record.id);
  if ((record.flags & kHasNrtaSeqId) != 0) {
    add("nrta_seq_id", ValueType::kUint, record.nrta_seq_id());
  }
  if ((record.flags & kOpen) != 0) add("open", ValueType::kBool, 1);
  if ((record.flags & kStartLost) != 0) add("start_lost", ValueType::kBool, 1);
  if (header_->streams[record.stream].description.has_own_time()) {
    add(kOwnTimeKey, ValueType::kUint, record.raw_start_ns());
    return;
  }
  if (!bounds_) return;
  if ((record.flags & kVendorClock) != 0) {
    attributes_.push_back({"clock", ValueType::kString, 0, "vendor"});
  }
  if (const auto bound_ns = bounds_->Of(record)) add("eps_ns", ValueType::kUint, *bound_ns);
  if (header_->clock_arguments) add("ts_raw_ns", ValueType::kUint, record.raw_start_ns());
}

void EventAttributes::Clear() {
  attributes_.clear();
  names_.clear();
  taken_.clear();
  taken_of_ = 0;
  last_number_ = 1;
}

// Reserved names count as taken even if the record has no such attribute.
bool EventAttributes::IsReserved(std::string_view name) {
  if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) return true;
  if (attributes_.size() <= kFewAttributes) {
    return std::any_of(attributes_.begin(), attributes_.end(),
                       [name](const EventAttribute& other) { return other.name == name; });
  }
  // The set catches up with attributes_ only when it is asked.
  for (; taken_of_ < attributes_.size(); ++taken_of_) taken_.insert(attributes_[taken_of_].name);
  return taken_.contains(name);
}

std::string_view EventAttributes::Renamed(std::string_view name, std::string_view before) {
  // A few prefixes keep the name readable; more of them would only make it long.
  std::string& renamed = names_.emplace_back(name);
  for (int i = 0; i < kPrefixesMax; ++i) {
    renamed.insert(0, before);
    if (!IsReserved(renamed)) return renamed;
  }
  // No number is used twice in a record, so that each attribute collides with at most one of them,
  // whatever a hostile worker calls it.
  const size_t bytes = renamed.size();
  do {
    renamed.resize(bytes);
    renamed += fmt::format("#{}", ++last_number_);
  } while (IsReserved(renamed));
  return renamed;
}

void EventAttributes::Add(std::string_view name, const ShapeKey& key, uint64_t value,
                          const TimelineRecord& record) {
  attributes_.push_back(
      {name, key.type, value, IsText(key.type) ? record.text(value) : std::string_view()});
}

void EventAttributes::AddStart(const TimelineRecord& record) {
  const Shape& shape = record.start();
  const auto values = record.start_values();
  // Structure of framework events is shown by other means than attributes.
  const bool is_framework = this->is_framework(record);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    if (is_framework && key.scope == KeyScope::kTop &&
        std::find(kStructure.begin(), kStructure.end(), key.name) != kStructure.end()) {
      continue;
    }
    // AddModel adds it, since it may also come from another event.
    if (key.name == "model_name" && key.scope == KeyScope::kData) continue;
    std::string_view name = key.name;
    if (name == "nc_timestamp_ns" && record.kind == RecordKind::kSpan) {
      name = "nc_start_timestamp_ns";
    } else if (IsReserved(name)) {
      name = Renamed(name, key.scope == KeyScope::kData ? "data." : "top.");
    }
    Add(name, key, values[i], record);
  }
  AddModel(record);
}

void EventAttributes::AddStop(const Shape& shape, std::span<const uint64_t> values,
                              const TimelineRecord& record) {
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    std::string_view name = shape.keys[i].name;
    if (name == "nc_timestamp_ns") {
      name = "nc_stop_timestamp_ns";
    } else if (IsReserved(name)) {
      name = Renamed(name, "stop_");
    }
    Add(name, shape.keys[i], values[i], record);
  }
}

// Must be reached for every record, because ModelNames learns from each preparation.
void EventAttributes::AddModel(const TimelineRecord& record) {
  const auto model = models_.Of(record);
  if (!model) return;
  if (model->key != nullptr) {
    Add("model_name", *model->key, model->value, record);
  } else {
    attributes_.push_back({"model_name", ValueType::kString, 0, model->name});
  }
}

}  // namespace neurontrace
