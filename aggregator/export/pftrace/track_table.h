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
#include "aggregator/export/pftrace/lanes.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/track_descriptor.h"
#include "aggregator/export/row_source.h"

namespace neurontrace {

// A row of the trace with its lanes: what one source tells of one thread.
struct TraceRow {
  uint32_t process = 0;  // index
  uint32_t stream = 0;   // of the first event; rows of several streams are possible by grouping
  RowSource source = RowSource::kRuntime;
  std::string name;
  uint64_t thread_id = 0;            // the real one
  uint32_t lane_parent_uuid = 0;     // of further lanes
  int32_t rank = 0;                  // of the first lane
  std::vector<uint32_t> lane_uuids;  // the first is the row's own track
  Lanes lanes;
  uint64_t arguments_generation = 0;  // of what follows, and whose it is
  uint32_t arguments_stream = 0;
  uint64_t arguments_thread_id = 0;
  std::string arguments;  // those that every event of the row has, serialized
};

// The tracks of one instance's clock.
struct ClockTrackUuids {
  uint32_t findings = 0;
  uint32_t bound = 0;
  uint32_t correction = 0;
};

// The tracks of a trace, a tree: processes, workers and cores in them as the grouping says, rows
// with their lanes, and counters. Each is described in the file before its first use, what it hangs
// from before it. Rows of the runtime and of the hardware are plain tracks, those of framework
// files are threads (docs/decisions/0027). Process and thread numbers in the file are our own, in
// the order in which they should stand: real ones recur on other instances. One thread at a time.
class TrackTable {
 public:
  TrackTable(Grouping grouping, PacketWriter& out) : grouping_(std::move(grouping)), out_(out) {}

  // Beyond so many rows the events of further threads share one.
  static constexpr size_t kRowsMax = 65'536;
  // Physical cores of one thread of a logical one; further ones share a row.
  static constexpr size_t kCoresMax = 64;

  // Describes the processes that are known beforehand.
  void Begin(const TimelineHeader& header);

  // The row of an event; `core` is the physical core of a hardware event where it says so.
  uint32_t NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                     std::optional<uint64_t> core);
  uint32_t FrameworkRow(const TimelineRecord& record);
  TraceRow& row(uint32_t index) { return rows_[index]; }
  // The track of a lane, described if it is new.
  uint32_t LaneUuid(uint32_t row, uint32_t lane);

  // The track of a counter of the record's process.
  uint32_t CounterUuid(const TimelineRecord& record, const std::string& name);
  // What a whole stream's tracks hang from: its core, its worker, or its process.
  uint32_t StreamUuid(uint32_t stream);
  // A track there for what was lost of it.
  uint32_t LossUuid(uint32_t stream);
  // New tracks for the clock of an instance, below its first process.
  ClockTrackUuids DescribeClock(const std::string& instance_id, const std::string& boot_id);
  // A track for what concerns the whole trace.
  uint32_t WarningUuid();

  using Unit = TrackUnit;
  using Child = ChildTrack;
  // A new track.
  uint32_t DescribeChild(const Child& child);
  // The first process of an instance; 0: there is none.
  uint32_t InstanceUuid(const std::string& instance_id);
  // The counters of a host's sampler, below a process for the host; those of single processors
  // (by number) together.
  uint32_t HostCounterUuid(const WorkerIdentity& host, const std::string& name, Unit unit,
                           std::string_view axis = {});
  uint32_t HostCpuUuid(const WorkerIdentity& host, const std::string& cpu);

  size_t processes() const { return processes_.size(); }
  size_t rows() const { return rows_.size(); }
  size_t tracks() const { return next_uuid_ - 1; }

 private:
  struct Process {
    uint32_t uuid = 0;
    int32_t pid = 0;
    std::string label;
  };
  struct RowKey {
    uint32_t stream = 0;
    uint64_t process_id = 0;  // hash of a framework process's id; 0 otherwise
    uint64_t thread_id = 0;   // a hash where it is a word
    RowSource source = RowSource::kRuntime;
    friend bool operator==(const RowKey&, const RowKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const RowKey& key) {
      return H::combine(std::move(h), key.stream, key.process_id, key.thread_id, key.source);
    }
  };
  // The rows of one key: several only for the physical cores of a logical one.
  struct CoreRow {
    std::optional<uint64_t> core;
    uint32_t row = 0;
  };
  static constexpr uint32_t kNoRow = 0xffffffffu;
  // The row that was found last for an event like this.
  struct LatestRow {
    RowKey key;
    std::optional<uint64_t> core;
    uint32_t row = kNoRow;
  };
  // How many rows of each source stand below a track.
  struct RowCounts {
    uint64_t runtime = 0;
    uint64_t hardware = 0;
  };

  uint32_t ProcessOf(uint32_t stream, uint64_t thread_id);
  std::string ProcessKey(uint32_t stream, const std::string& label) const;
  void CollectRanks();
  uint32_t HostProcess(const WorkerIdentity& host);
  uint32_t FrameworkProcess(uint32_t stream, const std::string& process_id);
  uint32_t AddProcess(const std::string& key, std::string label, const WorkerIdentity& worker,
                      std::string_view labels);
  uint32_t AddFrameworkRow(uint32_t process, const RowKey& key, std::string name,
                           uint64_t thread_id);
  uint32_t AddNeuronRow(uint32_t process, const RowKey& key, std::optional<uint64_t> core);
  // What hangs from the levels of a stream in a process, down to the thread's where it is given.
  uint32_t GroupUuid(uint32_t process, uint32_t stream, std::optional<uint64_t> thread_id);
  // A counter of the process, and how it is described if it is new; beyond kRowsMax the one that is
  // there for all further ones.
  uint32_t CounterIn(uint32_t process, const std::string& name, const Child& description);
  uint32_t RowForCore(std::vector<CoreRow>& rows, const RowKey& key, std::optional<uint64_t> core);
  uint32_t FirstProcess(uint32_t stream);

  const Grouping grouping_;
  PacketWriter& out_;
  const TimelineHeader* header_ = nullptr;
  std::vector<Process> processes_;
  absl::flat_hash_map<std::string, uint32_t> process_of_key_;
  absl::flat_hash_map<std::string, std::vector<int64_t>> ranks_of_key_;
  absl::flat_hash_map<std::string, uint32_t> label_counts_;
  std::vector<TraceRow> rows_;
  absl::flat_hash_map<RowKey, std::vector<CoreRow>> rows_of_key_;
  absl::flat_hash_map<std::string, uint32_t> row_of_label_;
  absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> counters_;  // by process, name
  absl::flat_hash_map<uint32_t, uint32_t> losses_;                            // by stream
  absl::flat_hash_map<uint32_t, uint32_t> clock_counts_;  // of clocks, by process
  std::optional<GroupLevels> levels_;
  absl::flat_hash_map<std::string, uint32_t> groups_;        // tracks by process and names
  absl::flat_hash_map<uint32_t, RowCounts> row_counts_;      // by track
  absl::flat_hash_map<uint32_t, uint32_t> host_cpus_;        // by process
  absl::flat_hash_map<uint32_t, uint32_t> first_processes_;  // of frameworks' streams
  std::vector<uint32_t> order_;                              // streams as they are displayed
  std::vector<uint32_t> places_;                             // of streams in that order
  std::vector<LatestRow> latest_;  // by stream, source, parity of the core
  int64_t next_tid_ = 0;
  int32_t next_pid_ = 1;
  uint32_t next_uuid_ = 1;
  uint32_t warning_uuid_ = 0;
};

}  // namespace neurontrace
