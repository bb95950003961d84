// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/insight/group_ids.h"
#include "aggregator/insight/insight_class.h"
#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_event.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Makes the events that the insight rule reads of the records of a timeline, each core's in the
// order of their ends. Each stream of a core that has events or losses in the window is a core of
// the engine; all other streams are ignored.
//
// The rule needs one clock per core. Here it is the reference timeline, into which the maps of
// the host and of its devices lead every stamp of the core; they never run backwards. Recorded
// stamps would not do: the host's clock may have been set during the capture, and the runtime moves
// what a device stamped by one synchronisation point only. An execution whose device has a map for
// some of its events and not for others mixes two clocks; such records are counted and warned of.
//
// Used by one thread at a time; the streams and the table must outlive it. The streams must have
// the clocks that the timeline was read with.
class InsightFeed {
 public:
  // What the streams do not tell. A plain value.
  struct Facts {
    // Reference time, as in the filter of the reading: losses outside of it do not matter.
    uint64_t window_start_ns = 0;
    uint64_t window_end_ns = UINT64_MAX;
  };
  // Events that wait until all that end before them have come. Beyond, the one that ends first is
  // passed on early.
  static constexpr size_t kHeldMax = size_t{1} << 20;
  // Ids of models over all cores, and distinct names. Further ones are told apart by their ids.
  static constexpr size_t kModelIdsMax = 65'536;
  static constexpr size_t kModelsMax = 4'096;

  InsightFeed(std::span<const TimelineStream> streams, ShapeFieldTable& fields, Facts facts,
              size_t held_max = kHeldMax);

  // Returns the types of events that are read, as items of an EventFilter: all others may be left
  // out of the timeline.
  static std::vector<std::string> EventTypes();

  // Takes a preparation from before the first batch, see ExecutionFinder.
  void RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                         std::string_view model_name) {
    executions_.RecordPreparation(stream, exec_id, start_ns, model_name);
  }
  // Takes the next batch, in the timeline's order, and appends the events that nothing can precede
  // any more.
  void Take(const TimelineBatch& batch, std::vector<InsightEvent>& done);
  // Appends the remaining events. Called once, after the last batch.
  void Finish(std::vector<InsightEvent>& done);

  // The selected cores, which InsightEvent::core counts.
  std::span<const InsightCore> cores() const { return cores_; }
  // Those without events or losses in the window whose process has not ended: their indexes are not
  // in use.
  std::span<const InsightCore> silent() const { return silent_; }
  // Returns the stream of a core: an index into the streams.
  uint32_t StreamOf(uint32_t core) const { return stream_of_[core]; }
  // Return one entry for each core, in reference time. Conditions have no losses.
  std::vector<CoreCondition> Conditions() const;
  std::vector<std::vector<CoreLoss>> Losses() const;
  // A name of a model with its hash in InsightEvent::model. Names are shortened by KeptName.
  struct Model {
    uint64_t hash = 0;
    std::string name;
  };
  // Those seen so far, in the order in which they were found.
  std::span<const Model> models() const { return models_; }
  // Returns a sentence for each limit that was reached and each clock that was mixed.
  std::vector<std::string> Warnings() const;

 private:
  static constexpr uint32_t kNoCore = UINT32_MAX;
  // An event that waits for its turn, see EndsBefore. Equal events have an order that no table
  // decides, so that equal captures give equal reports.
  struct Held {
    InsightEvent event;
    uint64_t number = 0;
    bool operator>(const Held& other) const {
      if (EndsBefore(event, other.event) != EndsBefore(other.event, event)) {
        return EndsBefore(other.event, event);
      }
      const auto key = [](const Held& held) {
        return std::tuple(held.event.core, held.event.kind, held.number);
      };
      return key(*this) > key(other);
    }
  };
  // Parts of several physical cores of one operation: core, class, exec_id, op_id.
  using Part = std::tuple<uint32_t, InsightClass, uint64_t, uint64_t>;

  // Fills cores_, silent_ and stream_of_.
  void FindCores();
  // Passes one record on, unless ExecutionFinder reports it.
  void Take(const TimelineRecord& record);
  void Take(const Execution& execution);
  // Joins the spans that the physical cores of a logical core have of one operation.
  void TakePart(const InsightEvent& event);
  void Hold(const InsightEvent& event) { held_.push({event, next_number_++}); }
  // Appends what ends before this time: nothing earlier can come any more.
  void ReleaseBefore(uint64_t time_ns, std::vector<InsightEvent>& done);
  // Returns the model as InsightEvent has it, by name if any event of the stream named this id.
  uint64_t ModelOf(uint32_t stream, std::string_view name, std::optional<uint64_t> model_id);
  uint64_t GroupOf(const TimelineRecord& record, const ShapeFields& fields);
  CoreCondition ConditionOf(const TimelineStream& stream) const;
  std::vector<CoreLoss> LossesOf(const TimelineStream& stream) const;

  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  const Facts facts_;
  const size_t held_max_;
  std::vector<InsightCore> cores_;
  std::vector<InsightCore> silent_;
  std::vector<uint32_t> stream_of_;  // by core
  std::vector<uint32_t> core_of_;    // by stream, or kNoCore
  ExecutionFinder executions_;
  std::vector<GroupIds> groups_;  // by job
  std::vector<uint32_t> job_of_;  // by core: an index into groups_
  std::vector<Execution> ended_;  // of one batch; keeps its memory
  std::vector<Model> models_;
  absl::flat_hash_set<uint64_t> model_hashes_;
  absl::flat_hash_map<Part, InsightEvent> parts_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint64_t> model_of_id_;  // stream, model_id
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
  uint64_t next_number_ = 0;
  uint64_t released_early_ = 0;
  uint64_t start_lost_ = 0;
  uint64_t without_length_ = 0;
  // By core: records by a device's map, and by the runtime's times.
  std::vector<std::pair<uint64_t, uint64_t>> device_times_;
};

}  // namespace neurontrace
