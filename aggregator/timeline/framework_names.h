// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// What the metadata events of one framework file contain. A plain value. A trace file names its
// processes and threads; their ids are kept as text, because files use both numbers and texts such
// as "Spans" for them. A mapping file lists the operations that the runtime's sequences were
// submitted for.
struct FrameworkNames {
  // Processes and threads of one file. Further ones get no name: their id is shown instead.
  static constexpr size_t kRowsMax = 65'536;
  // Limits over all files of one reading. Processes and threads beyond the bytes are shown by their
  // ids; mapped operations beyond the number are counted and dropped.
  static constexpr size_t kNameBytesMax = size_t{128} << 20;
  static constexpr size_t kMappedMax = 1'048'576;

  struct Process {
    std::string name;
    std::string labels;
  };
  // By process id.
  std::map<std::string, Process> processes;
  // By (process id, thread id).
  std::map<std::pair<std::string, std::string>, std::string> threads;

  // One operation of a framework that one of the runtime's sequences was submitted for.
  struct Mapped {
    uint64_t nrta_seq_id = 0;
    // The framework's own number: `Sequence number` of its operations.
    uint64_t sequence_number = 0;
  };
  std::vector<Mapped> mapped;
  // Operations that were dropped because of kMappedMax.
  uint64_t mapped_beyond = 0;
};

// Returns whether the stream is that of a mapping file. None of its events is on the timeline.
bool IsFrameworkMapping(const StreamIdentity& stream);

// The room that remains for all files of one reading together. ReadFrameworkNames subtracts what it
// used, so that many small files cannot exceed what one large file may use.
struct FrameworkRoom {
  size_t name_bytes = FrameworkNames::kNameBytesMax;
  size_t mapped = FrameworkNames::kMappedMax;
};

// Reads the metadata events of a whole stream, before any of its events is shown. Of chunks without
// metadata it decodes only the dictionary. Chunks that cannot be read are skipped silently:
// TimelineReader reports them. Fails if the index cannot be read.
absl::StatusOr<FrameworkNames> ReadFrameworkNames(ChunkSource& source,
                                                  const StreamDescription& stream,
                                                  FrameworkRoom& room);

// Returns the text of an attribute's value of any type: "123", "Spans", "-1", "true". `strings` is
// the dictionary of the value's chunk.
std::string AttributeText(const ShapeKey& key, uint64_t value,
                          const std::vector<std::string_view>& strings);

// Return the ids by which a framework's record names its row, or an empty text if it has none.
std::string FrameworkProcessId(const TimelineRecord& record);
std::string FrameworkThreadId(const TimelineRecord& record);

// Returns the value of a key of the record's start event and, if `key` is given, the key itself.
// Returns nullptr if there is no such key. Both point into the record's batch.
const uint64_t* FindAttribute(const TimelineRecord& record, KeyScope scope, std::string_view name,
                              const ShapeKey** key = nullptr);

}  // namespace neurontrace
