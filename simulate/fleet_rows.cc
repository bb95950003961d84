// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet_rows.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace neurontrace {
namespace {

constexpr auto kU = ValueType::kUint;
constexpr auto kS = ValueType::kString;

std::vector<ShapeKey> Keys(std::initializer_list<std::pair<std::string_view, ValueType>> keys) {
  std::vector<ShapeKey> list;
  for (const auto& [name, type] : keys) list.push_back({name, type, KeyScope::kData});
  return list;
}

constexpr uint32_t kPresent = ((1u << kFieldCount) - 1) & ~FieldBit(Field::kNrtaSeqId);

struct TypeKeys {
  std::vector<ShapeKey> start;
  std::vector<ShapeKey> stop;
};

// The runtime's attributes of each type: fleet_model.h's order.
std::array<TypeKeys, kFleetEventTypes> MakeTypeKeys() {
  const auto model = Keys({{"model_id", kU}, {"model_name", kS}});
  const auto block = Keys({{"exec_id", kU}, {"model_id", kU}, {"model_name", kS}});
  const auto ticks = Keys({{"nc_timestamp_ns", kU}});
  return {{{model, {}},
           {block, {}},
           {block, {}},
           {Keys({{"device_core_idx", kU},
                  {"exec_id", kU},
                  {"nc_timestamp_ns", kU},
                  {"model_id", kU},
                  {"model_name", kS}}),
            ticks},
           {Keys({{"gid", kU},
                  {"op_id", kU},
                  {"exec_id", kU},
                  {"nc_timestamp_ns", kU},
                  {"algorithm", kS}}),
            ticks},
           {Keys({{"nc_timestamp_ns", kU}, {"model_id", kU}}), ticks},
           {Keys({{"exec_id", kU}, {"nec_dev_id", kU}}), {}},
           {Keys({{"tensor_id", kU}, {"size", kU}}), {}},
           {Keys({{"tensor_id", kU}, {"size", kU}}), {}},
           {Keys({{"device_core_idx", kU}, {"exec_id", kU}, {"nc_timestamp_ns", kU}}), {}}}};
}

bool IsInstant(FleetEventType type) { return type == FleetEventType::kError; }

// The shape of a type's start has an even index, that of its stop follows.
std::array<Shape, FleetRows::kShapes> MakeShapes() {
  std::array<Shape, FleetRows::kShapes> shapes;
  std::array<TypeKeys, kFleetEventTypes> keys = MakeTypeKeys();
  for (size_t i = 0; i < kFleetEventTypes; ++i) {
    const auto type = static_cast<FleetEventType>(i);
    shapes[2 * i] = {.event_type = RuntimeEventName(type),
                     .phase = IsInstant(type) ? Phase::kInstant : Phase::kStart,
                     .present = kPresent,
                     .keys = std::move(keys[i].start)};
    shapes[2 * i + 1] = {.event_type = RuntimeEventName(type),
                         .phase = Phase::kStop,
                         .present = kPresent,
                         .keys = std::move(keys[i].stop)};
  }
  return shapes;
}

AttributeValue Number(uint64_t bits) { return {bits, {}}; }

}  // namespace

FleetRows::FleetRows(const FleetPlan& plan) : plan_(plan), shapes_(MakeShapes()) {
  for (uint16_t i = 0; i < plan_.pp * 3; ++i) names_.push_back(FleetModel::ModelName(i));
}

FleetRow FleetRows::Start(const FleetEvent& event, uint64_t row) {
  return MakeRow(event, 2 * static_cast<size_t>(event.type), event.start_ns, row, row);
}

std::optional<FleetRow> FleetRows::Stop(const FleetEvent& event, uint64_t row, uint64_t start_row) {
  if (IsInstant(event.type) || event.is_open) return std::nullopt;
  return MakeRow(event, 2 * static_cast<size_t>(event.type) + 1, event.end_ns, row, start_row);
}

FleetRow FleetRows::MakeRow(const FleetEvent& event, size_t shape, uint64_t time_ns, uint64_t row,
                            uint64_t start_row) {
  FleetRow made{.shape = shape};
  made.fields.timestamp_ns = time_ns;
  made.fields.id = IdOf(event.rank, row);
  made.fields.nc_local_id = row;
  made.fields.tracking_id = IdOf(event.rank, start_row);
  made.fields.thread_id = 1'000 + plan_.core_of(event.rank);
  made.fields.worker_gid = event.rank;
  values_.clear();
  for (const ShapeKey& key : shapes_[shape].keys) {
    if (key.name == "model_id") values_.push_back(Number(event.model + 1));
    if (key.name == "model_name") values_.push_back({0, names_[event.model]});
    if (key.name == "exec_id") values_.push_back(Number(event.exec_id));
    if (key.name == "op_id") values_.push_back(Number(static_cast<uint64_t>(event.op)));
    if (key.name == "gid") values_.push_back(Number(event.group));
    if (key.name == "algorithm") values_.push_back({0, "ring"});
    if (key.name == "device_core_idx" || key.name == "nec_dev_id")
      values_.push_back(Number(plan_.core_of(event.rank)));
    if (key.name == "tensor_id") values_.push_back(Number(0x7f3a'4000'0000 + event.exec_id % 64));
    if (key.name == "size") values_.push_back(Number(event.bytes));
    // The device counts from its start, by its own clock.
    if (key.name == "nc_timestamp_ns") values_.push_back(Number(time_ns - plan_.start_ns / 2));
  }
  made.values = values_;
  return made;
}

WorkerIdentity FleetWorker(const FleetPlan& plan, uint32_t rank, std::string_view boot_id) {
  const uint32_t pid = 1'000 + plan.process_of(rank) % plan.processes_per_instance;
  return {.instance_id = fmt::format("i-{:017x}", plan.instance_of(rank) + 1),
          .boot_id = std::string(boot_id),
          .pid = pid,
          .start_time_ticks = 1};
}

StreamIdentity FleetStream(const FleetPlan& plan, uint32_t rank, std::string_view agent_id,
                           std::string_view boot_id) {
  return {.agent_id = std::string(agent_id),
          .worker = FleetWorker(plan, rank, boot_id),
          .kind = StreamKind::kNeuronCore,
          .nc_idx = plan.core_of(rank)};
}

std::vector<RankEvidence> FleetRankEvidence(const FleetPlan& plan, uint32_t rank) {
  return {{RankSource::kCommunicator, rank, plan.ranks(), "simulated"}};
}

}  // namespace neurontrace
