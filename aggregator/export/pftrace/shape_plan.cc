// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/shape_plan.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/export/row_source.h"

namespace neurontrace {
namespace {

// The arguments that every event has in addition to its own attributes: an attribute of the same
// name is renamed.
constexpr std::array<std::string_view, 23> kOwnArguments = {
    "clock",       "device_profile", "duration",
    "eps_ns",      "eps_unknown",    "id",
    "instance_id", "lnc_idx",        "name",
    "nc_idx",      "nrta_seq_id",    "open",
    "process_id",  "process_text",   "squeezed",
    "start_lost",  "thread_id",      "thread_text",
    "timestamp",   "timestamp_unit", "trace_event_source",
    "ts_raw_ns",   kOwnTimeKey};
// Attributes of framework events that became something else: a row, a name, a length, an arrow.
constexpr std::array<std::string_view, 8> kFrameworkStructure = {"name",    "pid", "tid", "dur_ns",
                                                                 "flow_id", "bp",  "ts",  "dur"};

// Attributes that the runtime writes as numbers in some events and as texts in others.
constexpr std::array<std::string_view, 3> kNumbersAlsoAsText = {"mem_type", "size", "tensor_id"};

// Shapes of stops that are remembered for one shape of a start. Real ones have one or two.
constexpr size_t kStopsMax = 64;

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns whether the shape has a key of this name in any scope.
bool HasKey(const Shape& shape, std::string_view name) {
  return std::any_of(shape.keys.begin(), shape.keys.end(),
                     [name](const ShapeKey& key) { return key.name == name; });
}

// Only keys beside an event's data can be structure; in the data the same name is an attribute.
bool IsStructure(const ShapeKey& key) {
  return key.scope == KeyScope::kTop && Contains(kFrameworkStructure, key.name);
}

// Returns the name of an attribute before it is made unique: the vendor's for device times, and one
// with a prefix if this program uses the name itself.
std::string ArgumentName(std::string_view key, bool is_span) {
  if (is_span && key == "nc_timestamp_ns") return "nc_start_timestamp_ns";
  if (Contains(kOwnArguments, key) || key == "worker_gid") return "data." + std::string(key);
  return std::string(key);
}

// Returns the names of a shape's arguments, all different: the same key can be in an event's data
// and beside it.
std::vector<std::string> ArgumentNames(const Shape& shape) {
  std::vector<std::string> names;
  for (const ShapeKey& key : shape.keys) {
    std::string name = ArgumentName(key.name, shape.phase == Phase::kStart);
    while (Contains(names, name)) name.insert(0, key.scope == KeyScope::kData ? "data." : "top.");
    names.push_back(std::move(name));
  }
  return names;
}

// Returns the names of a stop's arguments, different from those of its start.
std::vector<std::string> StopArgumentNames(const Shape& start, const Shape& stop) {
  std::vector<std::string> taken = ArgumentNames(start);
  const size_t of_start = taken.size();
  for (const ShapeKey& key : stop.keys) {
    const bool is_device_time = key.name == "nc_timestamp_ns";
    std::string name = is_device_time            ? "nc_stop_timestamp_ns"
                       : HasKey(start, key.name) ? "stop_" + std::string(key.name)
                                                 : ArgumentName(key.name, false);
    while (Contains(taken, name)) name.insert(0, "stop_");
    taken.push_back(std::move(name));
  }
  taken.erase(taken.begin(), taken.begin() + static_cast<ptrdiff_t>(of_start));
  return taken;
}

// Interns the names, so that it must be called again for each generation.
ArgumentPlan PlanArgument(uint32_t index, const ShapeKey& key, const std::string& name,
                          Interner& interner) {
  const bool can_be_number =
      key.type == ValueType::kString && Contains(kNumbersAlsoAsText, key.name);
  return {.key = index,
          .type = key.type,
          .name_iid = interner.AnnotationName(name),
          .text_name_iid = can_be_number ? interner.AnnotationName(name + "_text") : 0};
}

// Everything about a shape that does not depend on interned numbers.
ShapePlan MakeStructure(const Shape& shape) {
  ShapePlan plan;
  plan.is_made = true;
  plan.has_id = (shape.present & FieldBit(Field::kId)) != 0;
  plan.source = RowSourceOf(shape.event_type);
  plan.is_device_execution = shape.event_type == "nc_exec_running";
  plan.names_model = shape.event_type == "kbl_exec_pre";
  for (uint32_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool is_number = key.type == ValueType::kUint;
    const bool is_text = key.type == ValueType::kString;
    if (key.scope == KeyScope::kTop && key.name == "name" && is_text) plan.name_key = i;
    if (key.scope != KeyScope::kData) continue;
    if (key.name == "device_core_idx" && is_number) plan.core_key = i;
    if (key.name == "model_id" && is_number) plan.model_id_key = i;
    if (key.name == "exec_id" && is_number) plan.exec_id_key = i;
    if (key.name == "model_name" && is_text) plan.model_name_key = i;
  }
  return plan;
}

}  // namespace

ShapePlan& EventPlans::PlanOf(const SharedShape& shape) {
  // A hash table, because such numbers are sparse and their shapes short-lived.
  if (shape.number >= kPlansMax) [[unlikely]] {
    auto& plan = late_plans_[shape.number];
    if (plan == nullptr) plan = std::make_unique<ShapePlan>();
    return *plan;
  }
  if (shape.number >= plans_.size()) plans_.resize(shape.number + 1);
  auto& plan = plans_[shape.number];
  if (plan == nullptr) plan = std::make_unique<ShapePlan>();
  return *plan;
}

const ShapePlan& EventPlans::Structure(const SharedShape& shape) {
  ShapePlan& plan = PlanOf(shape);
  if (!plan.is_made) plan = MakeStructure(shape.shape);
  return plan;
}

// Called for every event: the first line is the usual case.
ShapePlan& EventPlans::Interned(const SharedShape& shape, Interner& interner) {
  ShapePlan& plan = PlanOf(shape);
  if (plan.generation == interner.generation()) return plan;
  Structure(shape);
  const Shape& about = shape.shape;
  plan.name_iid = interner.EventName(about.event_type);
  plan.name_value_iid = interner.StringValue(about.event_type);
  const bool is_framework = plan.name_key != ShapePlan::kNone;
  const std::string_view category = FrameworkCategory(about.event_type);
  plan.category_iid = is_framework && !category.empty() ? interner.Category(category) : 0;
  const std::vector<std::string> names = ArgumentNames(about);
  plan.arguments.clear();
  plan.stops.clear();
  for (uint32_t i = 0; i < about.keys.size(); ++i) {
    const ShapeKey& key = about.keys[i];
    if (is_framework && IsStructure(key)) continue;
    // SliceArguments::WriteModel writes it, since it may also come from another event.
    if (i == plan.model_name_key) continue;
    plan.arguments.push_back(PlanArgument(i, key, names[i], interner));
  }
  plan.generation = interner.generation();
  return plan;
}

// `plan` must be that of the interner's generation. The result is valid until the next call,
// because a full list is emptied.
const std::vector<ArgumentPlan>& EventPlans::StopArguments(ShapePlan& plan,
                                                           const SharedShape& start,
                                                           const SharedShape& stop,
                                                           Interner& interner) {
  for (const ShapePlan::Stop& known : plan.stops) {
    if (known.shape == stop.number) return known.arguments;
  }
  if (plan.stops.size() == kStopsMax) plan.stops.clear();
  ShapePlan::Stop& made = plan.stops.emplace_back();
  made.shape = stop.number;
  const Shape& about = stop.shape;
  const std::vector<std::string> names = StopArgumentNames(start.shape, about);
  for (uint32_t i = 0; i < about.keys.size(); ++i) {
    made.arguments.push_back(PlanArgument(i, about.keys[i], names[i], interner));
  }
  return made.arguments;
}

// Consecutive records of a stream usually come from one chunk, which saves the look-up.
ChunkStrings& EventPlans::StringsOf(const TimelineRecord& record) {
  if (record.stream >= latest_.size()) latest_.resize(record.stream + 1);
  ChunkStrings*& latest = latest_[record.stream];
  if (latest == nullptr || latest->serial() != record.names->serial) {
    auto& strings = strings_[record.names->serial];
    if (strings == nullptr) strings = std::make_unique<ChunkStrings>(record.names->serial);
    latest = strings.get();
  }
  latest->last_used = batch_;
  return *latest;
}

void EventPlans::Sweep() {
  if (++batch_ % kBatchesKept != 0) return;
  // They point into strings_, from which elements are removed.
  for (ChunkStrings*& latest : latest_) latest = nullptr;
  absl::erase_if(strings_, [this](const auto& entry) {
    return entry.second->last_used + kBatchesKept < batch_;
  });
  if (late_plans_.size() > kPlansMax) late_plans_.clear();
}

}  // namespace neurontrace
