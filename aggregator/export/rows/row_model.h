// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/row_source.h"
#include "aggregator/export/rows/lanes.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Returns the streams in the order of their rows: instances by their lowest worker_gid, workers in
// each of them the same way, then cores by worker_gid. Those without one come last, by name. A pure
// function.
std::vector<uint32_t> DisplayOrder(std::span<const TimelineStream> streams);

// A process of a viewer. A plain value.
struct ExportProcess {
  std::string label;
  // Further text, from framework files.
  std::string labels;
  // The first stream that the process was made for.
  uint32_t stream = 0;
};

// A thread of a viewer, or several if its spans overlap: the events of one source on one thread.
struct ExportRow {
  uint32_t process = 0;  // index
  // Of the first event; the grouping can put several streams on one row.
  uint32_t stream = 0;
  RowSource source = RowSource::kRuntime;
  std::string name;
  // As recorded; nullopt for a row that several threads share.
  std::optional<uint64_t> thread_id;
  // The physical core, for rows of one.
  std::optional<uint64_t> core;
  // Among the rows of its process.
  uint32_t order = 0;
  Lanes lanes;
};

// The processes and rows of an exported file by the vendor's grouping: which row an event belongs
// to, the names of rows, and their order. Perfetto, chrome-json and XSpace share it;
// docs/formats/pftrace.md defines the names. Row numbers stay valid to the end, references to rows
// until the next row is added. Used by one thread at a time.
class RowModel {
 public:
  // Beyond this number, events of new threads share one row for each source in their stream's first
  // process ("further rows"), so that neither rows nor processes grow any further.
  static constexpr size_t kRowsMax = 65'536;
  // Physical cores of one thread of a logical core. Further ones share a row.
  static constexpr size_t kCoresMax = 64;

  explicit RowModel(Grouping grouping) : grouping_(std::move(grouping)) {}

  // `header` must outlive this object.
  void Begin(const TimelineHeader& header);

  // Returns the row of an event of any stream but a host's. New rows get the next index.
  uint32_t RowOf(const TimelineRecord& record);
  // The same for callers that know the parts; `core` is the physical core that a hardware event
  // names.
  uint32_t NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                     std::optional<uint64_t> core);
  uint32_t FrameworkRow(const TimelineRecord& record);

  // Returns the process for what concerns a stream as a whole.
  uint32_t ProcessOf(uint32_t stream);
  // Returns the process of a counter.
  uint32_t ProcessOf(const TimelineRecord& record);
  uint32_t FrameworkProcess(uint32_t stream, const std::string& process_id);

  size_t processes() const { return processes_.size(); }
  const ExportProcess& process(uint32_t index) const { return processes_[index]; }
  size_t rows() const { return rows_.size(); }
  ExportRow& row(uint32_t index) { return rows_[index]; }
  // Streams in the order of display, and the place of a stream in it.
  const std::vector<uint32_t>& streams() const { return streams_; }
  uint32_t order(uint32_t stream) const { return places_[stream]; }

 private:
  // Identifies a row by what an event has, so that its name is made only once.
  struct Key {
    uint32_t stream = 0;
    uint64_t process_id = 0;  // hash of a framework process's id
    uint64_t thread_id = 0;   // hash of a framework thread's id
    RowSource source = RowSource::kRuntime;
    std::optional<uint64_t> core;
    // Of the row that threads beyond kRowsMax share.
    bool is_shared = false;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.process_id, key.thread_id, key.source,
                        key.core, key.is_shared);
    }
  };
  static constexpr uint32_t kNoRow = 0xffffffffu;
  // Of `latest_` for each stream: half for the hardware, half for all other sources.
  static constexpr size_t kSlots = 8;
  struct LatestRow {
    Key key;
    uint32_t row = kNoRow;
  };

  // Looks the row up, or adds it within the limits.
  uint32_t FindNeuronRow(const Key& key);
  uint32_t SharedRow(uint32_t stream, RowSource source);
  uint32_t NeuronProcess(uint32_t stream, uint64_t thread_id);
  uint32_t AddProcess(const std::string& key, ExportProcess process);
  // Adds the row, or returns the one that has this key in its process.
  uint32_t AddRow(ExportRow row, std::string_view key);

  const Grouping grouping_;
  const TimelineHeader* header_ = nullptr;
  // The file has no rows of the runtime.
  bool is_hardware_only_ = false;
  // In the order of display.
  std::vector<uint32_t> streams_;
  // The place of each stream in that order.
  std::vector<uint32_t> places_;
  std::vector<ExportProcess> processes_;
  std::vector<ExportRow> rows_;
  absl::flat_hash_map<std::string, uint32_t> process_of_key_;
  absl::flat_hash_map<std::string, uint32_t> label_counts_;
  absl::flat_hash_map<std::string, uint32_t> row_of_name_;
  absl::flat_hash_map<Key, uint32_t> row_of_;
  // The number of physical cores by key without core.
  absl::flat_hash_map<Key, size_t> cores_;
  // Of frameworks' streams.
  absl::flat_hash_map<uint32_t, uint32_t> first_processes_;
  // The row found last by stream, source, and physical core or thread.
  std::vector<LatestRow> latest_;
};

}  // namespace neurontrace
