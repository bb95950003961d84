// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/event.h"
#include "lib/trace/ids.h"
#include "lib/trace/rank_evidence.h"
#include "simulate/fleet_model.h"

namespace neurontrace {

// A row of a chunk. Valid until its maker makes the next one.
struct FleetRow {
  size_t shape = 0;  // index for FleetRows::shape
  EventFields fields;
  std::span<const AttributeValue> values;
};

// Turns the events of a fleet into rows with the event types and attributes of the runtime: a row
// for the start of a span and one for its stop, or one for an instant. One thread.
class FleetRows {
 public:
  static constexpr size_t kShapes = 2 * kFleetEventTypes;

  // The plan must outlive it.
  explicit FleetRows(const FleetPlan& plan);
  FleetRows(const FleetRows&) = delete;
  FleetRows& operator=(const FleetRows&) = delete;

  // Returns the shape of rows with this index. Its texts are static.
  const Shape& shape(size_t index) const { return shapes_[index]; }

  // Returns the row of an event's start. `row` is its number among all rows of its rank.
  FleetRow Start(const FleetEvent& event, uint64_t row);
  // Returns the row of its stop, where `start_row` is the number of its start; nullopt for an
  // instant, and for what never ended.
  std::optional<FleetRow> Stop(const FleetEvent& event, uint64_t row, uint64_t start_row);

 private:
  uint64_t IdOf(uint32_t rank, uint64_t row) const {
    return uint64_t{plan_.core_of(rank)} << 50 | row;
  }
  FleetRow MakeRow(const FleetEvent& event, size_t shape, uint64_t time_ns, uint64_t row,
                   uint64_t start_row);

  const FleetPlan& plan_;
  const std::array<Shape, kShapes> shapes_;
  std::vector<std::string> names_;      // of models
  std::vector<AttributeValue> values_;  // of the last row
};

// Returns the process of a rank as captures name it. `boot_id` is that of its instance.
WorkerIdentity FleetWorker(const FleetPlan& plan, uint32_t rank, std::string_view boot_id);
// Returns the stream of a rank, read by this agent.
StreamIdentity FleetStream(const FleetPlan& plan, uint32_t rank, std::string_view agent_id,
                           std::string_view boot_id);
// Returns why the rank of a core is known.
std::vector<RankEvidence> FleetRankEvidence(const FleetPlan& plan, uint32_t rank);

}  // namespace neurontrace
