// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/pftrace/lanes.h"
#include "aggregator/export/row_source.h"

namespace neurontrace {

// What formats show as a process. Plain values, both.
struct ExportProcess {
  std::string label;
  std::string labels;   // more about it, of framework files
  uint32_t stream = 0;  // the first that it is made of
};

// What formats show as a thread, or as several where spans overlap.
struct ExportRow {
  uint32_t process = 0;  // index
  std::string name;
  uint32_t order = 0;  // among the rows of its process
  Lanes lanes;
};

// The processes and rows of a file by the vendor's grouping, for formats that write numbers of
// their own for them. Names are those of the Perfetto trace (docs/formats/pftrace.md). One thread
// at a time.
class RowTable {
 public:
  // Beyond, events share a row of their stream and source, in the stream's first process: neither
  // rows nor processes grow any more.
  static constexpr size_t kRowsMax = 65'536;

  explicit RowTable(Grouping grouping) : grouping_(std::move(grouping)) {}

  void Begin(const TimelineHeader& header);  // the header must outlive it

  // The row of an event of any stream but a host's. New ones are behind those known so far.
  uint32_t RowOf(const TimelineRecord& record);
  // The process of what concerns a stream as a whole.
  uint32_t ProcessOf(uint32_t stream);
  // The process of a counter.
  uint32_t ProcessOf(const TimelineRecord& record);

  size_t processes() const { return processes_.size(); }
  const ExportProcess& process(uint32_t index) const { return processes_[index]; }
  size_t rows() const { return rows_.size(); }
  ExportRow& row(uint32_t index) { return rows_[index]; }
  // Where a stream stands among all, by instance, process and core.
  uint32_t order(uint32_t stream) const { return order_[stream]; }

 private:
  struct Key {
    uint32_t stream = 0;
    uint64_t process_id = 0;  // a hash, of framework events
    uint64_t thread_id = 0;   // likewise
    std::optional<uint64_t> core;
    RowSource source = RowSource::kRuntime;
    bool is_shared = false;  // by all that are beyond kRowsMax
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.process_id, key.thread_id,
                        key.core.value_or(0), key.source, key.is_shared);
    }
  };
  uint32_t NeuronRow(const TimelineRecord& record);
  uint32_t FrameworkRow(const TimelineRecord& record);
  uint32_t SharedRow(uint32_t stream, RowSource source);
  uint32_t NeuronProcess(uint32_t stream, uint64_t thread_id);
  uint32_t FrameworkProcess(uint32_t stream, const std::string& process_id);
  uint32_t AddProcess(const std::string& key, uint32_t stream, std::string label,
                      std::string labels);
  uint32_t AddRow(ExportRow row, const std::string& key);

  const Grouping grouping_;
  const TimelineHeader* header_ = nullptr;
  std::vector<uint32_t> order_;  // by stream
  std::deque<ExportProcess> processes_;
  std::deque<ExportRow> rows_;
  absl::flat_hash_map<std::string, uint32_t> process_of_key_;
  absl::flat_hash_map<std::string, uint32_t> label_counts_;
  absl::flat_hash_map<std::string, uint32_t> row_of_name_;
  absl::flat_hash_map<Key, uint32_t> row_of_;
  absl::flat_hash_map<uint32_t, uint32_t> first_processes_;  // of frameworks' streams
};

}  // namespace neurontrace
