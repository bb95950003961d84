// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/pftrace/group_levels.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/row_source.h"
#include "aggregator/export/rows/row_model.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// The tracks of one row of the model, and the arguments that all of its events share.
struct TraceRow {
  RowSource source = RowSource::kRuntime;
  // The parent of further lanes.
  uint32_t lane_parent_uuid = 0;
  // Of the first lane.
  int32_t rank = 0;
  // The first is the row's own track.
  std::vector<uint32_t> lane_uuids;
  std::string arguments;  // serialized
  // For which `arguments` were serialised, as are the next two.
  uint64_t arguments_generation = 0;
  uint32_t arguments_stream = 0;
  uint64_t arguments_thread_id = 0;
};

// The tracks of one instance's clock; 0 if there are none.
struct ClockTrackUuids {
  uint32_t findings = 0;
  uint32_t bound = 0;
  uint32_t correction = 0;
};

// The unit of a counter's values.
enum class TrackUnit : uint8_t { kNoCounter, kNone, kNs, kBytes, kBytesPerSecond, kPercent };

// A track of slices, a counter, or a heading of tracks. A plain value.
struct ChildTrack {
  // 0: at the top level.
  uint32_t parent_uuid = 0;
  std::string name;
  TrackUnit unit = TrackUnit::kNoCounter;
  std::string_view description = {};
  // Among the children of its parent; see track_ranks.h.
  int32_t rank = 0;
  // Its children are sorted by rank.
  bool orders_children = false;
  // Counters with the same axis are drawn to one scale.
  std::string_view axis = {};
};

// The tracks of a Perfetto trace, as a tree: the processes and rows of a RowModel, workers and
// cores between them according to the grouping, and counters. Each track is described in the file
// before its first use, and its parent before it. Rows of the runtime and of the hardware are plain
// tracks, those of framework files are threads (docs/decisions/0027). Process and thread numbers in
// the file are our own, in the order of display, because real ones recur on other instances. Used
// by one thread at a time.
class TrackTable {
 public:
  // `model` and `out` must outlive this object; the model's Begin must precede its own.
  TrackTable(const Grouping& grouping, RowModel& model, PacketWriter& out)
      : grouping_(grouping), model_(model), out_(out) {}

  // Describes the processes that are known beforehand. `header` must outlive this object.
  void Begin(const TimelineHeader& header);

  // Return the row of an event, described if it is new; see RowModel.
  uint32_t NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                     std::optional<uint64_t> core) {
    return Described(model_.NeuronRow(stream, thread_id, source, core));
  }
  uint32_t FrameworkRow(const TimelineRecord& record) {
    return Described(model_.FrameworkRow(record));
  }
  // The row must have been returned by one of the functions above.
  TraceRow& row(uint32_t row) { return rows_[row]; }
  // Returns the track of a lane, described if it is new.
  uint32_t LaneUuid(uint32_t row, uint32_t lane);

  // Returns the track of a counter of the record's process.
  uint32_t CounterUuid(const TimelineRecord& record, const std::string& name);
  // Returns the parent of a whole stream's tracks: its core, its worker, or its process.
  uint32_t StreamUuid(uint32_t stream);
  // Returns a track below that one for the stream's losses.
  uint32_t LossUuid(uint32_t stream);
  // Describes new tracks for the clock of an instance, below its first process.
  ClockTrackUuids DescribeClock(const std::string& instance_id, const std::string& boot_id);
  // Returns the track for what concerns the whole trace.
  uint32_t WarningUuid();

  using Unit = TrackUnit;
  using Child = ChildTrack;
  // Describes a new track and returns it.
  uint32_t DescribeChild(const Child& child);
  // Returns the first process of an instance; 0 if it has none.
  uint32_t InstanceUuid(const std::string& instance_id);
  // Return the counters of a host's sampler, below a process for the host; those of single
  // processors (by number) are below a common heading. `stream` is the sampler's.
  uint32_t HostCounterUuid(uint32_t stream, const std::string& name, Unit unit,
                           std::string_view axis = {});
  uint32_t HostCpuUuid(uint32_t stream, const std::string& cpu);

  // Counts of what is described so far.
  size_t processes() const { return processes_.size(); }
  size_t rows() const { return rows_.size(); }
  size_t tracks() const { return next_uuid_ - 1; }

 private:
  // A process in the file: its track and its number.
  struct Process {
    uint32_t uuid = 0;
    int32_t pid = 0;
  };
  // The number of rows of each source below a track.
  struct RowCounts {
    uint64_t runtime = 0;
    uint64_t hardware = 0;
  };

  uint32_t Described(uint32_t row) {
    if (row >= rows_.size()) DescribeNew();
    return row;
  }
  // Describes what the model has and the file does not.
  void DescribeNew();
  // Describe one process or row of the model. Processes and rows must be described in the model's
  // order.
  void DescribeProcess(uint32_t process);
  void DescribeThread(const ExportRow& about, TraceRow& row);
  void DescribeTrack(const ExportRow& about, TraceRow& row);
  // Returns a process of the model, described if it is new.
  const Process& ProcessAt(uint32_t process);
  // Returns the parent of rows: the innermost level of a stream in a process, including the
  // thread's if one is given.
  uint32_t GroupUuid(uint32_t process, uint32_t stream, std::optional<uint64_t> thread_id);
  // Returns a counter of the process, described as given if it is new. Beyond kRowsMax counters,
  // returns the one that all further counters share.
  uint32_t CounterIn(uint32_t process, const std::string& name, const Child& description);
  // Returns the first stream in the order of display that has a property, or nothing.
  template <typename Predicate>
  std::optional<uint32_t> FirstStream(Predicate has) const;

  const Grouping grouping_;
  RowModel& model_;
  PacketWriter& out_;
  const TimelineHeader* header_ = nullptr;
  std::vector<Process> processes_;                                            // as in the model
  std::vector<TraceRow> rows_;                                                // as in the model
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> ranks_;                 // by process
  absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> counters_;  // by process, name
  absl::flat_hash_map<uint32_t, uint32_t> losses_;                            // by stream
  absl::flat_hash_map<uint32_t, uint32_t> clock_counts_;  // of clocks, by process
  std::optional<GroupLevels> levels_;
  absl::flat_hash_map<std::string, uint32_t> groups_;    // tracks by process and names
  absl::flat_hash_map<uint32_t, RowCounts> row_counts_;  // by track
  absl::flat_hash_map<uint32_t, uint32_t> host_cpus_;    // by process
  int64_t next_tid_ = 0;
  int32_t next_pid_ = 1;
  uint32_t next_uuid_ = 1;
  uint32_t warning_uuid_ = 0;
};

}  // namespace neurontrace
