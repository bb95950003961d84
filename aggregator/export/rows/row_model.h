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
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Spreads the spans of one row over lanes, each of which nests properly: on one Perfetto track an
// end closes the span begun last, so that two spans that overlap without one enclosing the other
// would silently swap their lengths. A span goes into the first lane that it fits. Spans come in
// the order of their start, at equal start the longer first.
class Lanes {
 public:
  // Perfetto drops what nests deeper than 512.
  static constexpr size_t kDepthMax = 500;
  // Beyond, the caller shows the span without its length.
  static constexpr size_t kLanesMax = 1'024;

  // The lane for [start, end), end after start; nullopt where there is none left.
  std::optional<uint32_t> Place(uint64_t start_ns, uint64_t end_ns);

 private:
  static void Close(std::vector<uint64_t>& lane, uint64_t until_ns) {
    while (!lane.empty() && lane.back() <= until_ns) lane.pop_back();
  }

  std::vector<std::vector<uint64_t>> lanes_;  // the ends of their open spans
};

// The streams in the order in which their rows stand: instances by their lowest worker_gid, workers
// in each too, then cores by worker_gid. What has none comes last, by name. Pure.
std::vector<uint32_t> DisplayOrder(std::span<const TimelineStream> streams);

// What a viewer shows as a process.
struct ExportProcess {
  std::string label;
  std::string labels;   // further text, from framework files
  uint32_t stream = 0;  // the first stream that the process was made for
};

// What a viewer shows as a thread, or as several where its spans overlap: the events of one source
// on one thread.
struct ExportRow {
  uint32_t process = 0;  // index
  uint32_t stream = 0;   // of the first event; the grouping can put several streams on one row
  RowSource source = RowSource::kRuntime;
  std::string name;
  std::optional<uint64_t> thread_id;  // as recorded; nullopt: a row that several threads share
  std::optional<uint64_t> core;       // the physical one, of rows that have one
  uint32_t order = 0;                 // among the rows of its process
  Lanes lanes;
};

// The processes and rows of an exported file, by the vendor's grouping: which row an event belongs
// to, what rows are called, and in which order they should stand. Perfetto, chrome-json and XSpace
// share it; docs/formats/pftrace.md has the names. One thread at a time.
class RowModel {
 public:
  // Beyond this number, events of new threads share one row for each source of their stream's first
  // process ("further rows"), so that neither rows nor processes grow any more.
  static constexpr size_t kRowsMax = 65'536;
  // Physical cores of one thread of a logical core. Further ones share a row.
  static constexpr size_t kCoresMax = 64;

  explicit RowModel(Grouping grouping) : grouping_(std::move(grouping)) {}

  void Begin(const TimelineHeader& header);  // `header` must outlive this object

  // Returns the row of an event of any stream but a host's. New rows get the next index.
  uint32_t RowOf(const TimelineRecord& record);
  // The same for callers that know the parts; `core` is the physical core that a hardware event
  // names.
  uint32_t NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                     std::optional<uint64_t> core);
  uint32_t FrameworkRow(const TimelineRecord& record);

  // Returns the process of what concerns a stream as a whole.
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
  struct Key {
    uint32_t stream = 0;
    uint64_t process_id = 0;  // hash of a framework process's id
    uint64_t thread_id = 0;   // hash of a framework thread's id
    RowSource source = RowSource::kRuntime;
    std::optional<uint64_t> core;
    bool is_shared = false;  // by the threads beyond kRowsMax
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.process_id, key.thread_id, key.source,
                        key.core, key.is_shared);
    }
  };
  static constexpr uint32_t kNoRow = 0xffffffffu;
  struct LatestRow {
    Key key;
    uint32_t row = kNoRow;
  };

  uint32_t FindNeuronRow(const Key& key);
  uint32_t SharedRow(uint32_t stream, RowSource source);
  uint32_t NeuronProcess(uint32_t stream, uint64_t thread_id);
  uint32_t AddProcess(const std::string& key, ExportProcess process);
  // Adds the row, or returns the one that has this key in its process.
  uint32_t AddRow(ExportRow row, std::string_view key);

  const Grouping grouping_;
  const TimelineHeader* header_ = nullptr;
  bool is_hardware_only_ = false;  // a file without rows of the runtime
  std::vector<uint32_t> streams_;  // as they are displayed
  std::vector<uint32_t> places_;   // of streams in that order
  std::vector<ExportProcess> processes_;
  std::vector<ExportRow> rows_;
  absl::flat_hash_map<std::string, uint32_t> process_of_key_;
  absl::flat_hash_map<std::string, uint32_t> label_counts_;
  absl::flat_hash_map<std::string, uint32_t> row_of_name_;
  absl::flat_hash_map<Key, uint32_t> row_of_;
  absl::flat_hash_map<Key, size_t> cores_;                   // physical cores by key without core
  absl::flat_hash_map<uint32_t, uint32_t> first_processes_;  // of frameworks' streams
  std::vector<LatestRow> latest_;  // the row found last, by stream, source, parity of the core
};

}  // namespace neurontrace
