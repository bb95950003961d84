// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/row_plans.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "aggregator/export/json/json_text.h"
#include "lib/trace/event.h"

namespace neurontrace {
namespace {

// Attributes of framework events that have columns of their own.
constexpr std::array<std::string_view, 4> kStructureKeys = {"name", "pid", "tid", "dur_ns"};

constexpr std::string_view kThreadKey = "thread_id";

// Decides by name and scope alone, whatever the type of the value: a value of another type leaves
// its column null and is among the attributes all the same.
RowPlan::Use UseOf(const ShapeKey& key, bool is_framework) {
  using enum RowPlan::Use;
  const bool is_top = key.scope == KeyScope::kTop;
  if (is_framework && is_top &&
      std::find(kStructureKeys.begin(), kStructureKeys.end(), key.name) != kStructureKeys.end()) {
    return kStructure;
  }
  if (is_top) return kAttribute;
  if (is_framework) return key.name == "stream" ? kFrameworkStream : kAttribute;
  if (key.name == "device_core_idx") return kPhysicalCore;
  if (key.name == "exec_id") return kExecId;
  if (key.name == "model_name") return kModelName;
  return kAttribute;
}

// Chooses the name of each attribute so that no two are equal, and serialises it. Called once for
// each shape.
RowPlan MakePlan(const Shape& shape, bool is_framework, bool is_span) {
  RowPlan plan;
  std::set<std::string> names;
  // How often a key of this name was renamed: a further one is renamed more often, which saves the
  // search.
  std::map<std::pair<std::string, KeyScope>, uint32_t> renamed;
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool is_device_time = key.name == "nc_timestamp_ns" && is_span;
    std::string name(is_device_time ? "nc_start_timestamp_ns" : key.name);
    // The same key can be in an event's data and beside it. The key of a thread's number is
    // reserved for numbers that do not fit their column.
    const auto is_taken = [&] { return name == kThreadKey || names.contains(name); };
    const auto rename = [&] { name.insert(0, key.scope == KeyScope::kData ? "data." : "top."); };
    uint32_t& times = renamed[{name, key.scope}];
    for (uint32_t i = 0; i < times; ++i) rename();
    for (; is_taken(); ++times) rename();
    names.insert(name);
    RowPlan::Key planned{.use = UseOf(key, is_framework)};
    AppendJsonKey(name, planned.json);
    plan.keys.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace

// A hostile capture can have any number of shapes, so that only the first are kept. The latest of
// the others covers a chunk that repeats one shape.
const RowPlan& RowPlans::Of(const SharedShape& shape, bool is_framework, bool is_span) {
  if (shape.number >= kShapesMax) {
    if (shape.number != other_number_) other_ = MakePlan(shape.shape, is_framework, is_span);
    other_number_ = shape.number;
    return other_;
  }
  if (shape.number >= by_number_.size()) by_number_.resize(shape.number + 1);
  auto& plan = by_number_[shape.number];
  if (plan == nullptr) {
    plan = std::make_unique<const RowPlan>(MakePlan(shape.shape, is_framework, is_span));
  }
  return *plan;
}

}  // namespace neurontrace
