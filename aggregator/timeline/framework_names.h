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

// What the metadata events of one framework file say. Of a trace file: what its processes and
// threads are called; their ids are kept as text, because files have both numbers and words for
// them ("Spans"). Of a mapping file: which operations its sequences were submitted for.
struct FrameworkNames {
  static constexpr size_t kRowsMax = 65'536;  // further ones keep their ids for a name
  // Over all files of one reading: bytes of processes and threads, which keep their ids for a name
  // beyond, and mapped operations; further ones are counted.
  static constexpr size_t kNameBytesMax = size_t{128} << 20;
  static constexpr size_t kMappedMax = 1'048'576;

  struct Process {
    std::string name;
    std::string labels;
  };
  std::map<std::string, Process> processes;                            // by process id
  std::map<std::pair<std::string, std::string>, std::string> threads;  // by process, thread id

  // An operation of a framework that the runtime's sequence was submitted for.
  struct Mapped {
    uint64_t nrta_seq_id = 0;
    uint64_t sequence_number = 0;  // the framework's own: `Sequence number` of its operations
  };
  std::vector<Mapped> mapped;
  uint64_t mapped_beyond = 0;  // were too many
};

// Whether it is the stream of a mapping file: nothing of it is on the timeline.
bool IsFrameworkMapping(const StreamIdentity& stream);

// What all files of one reading together have room for. What was taken is subtracted.
struct FrameworkRoom {
  size_t name_bytes = FrameworkNames::kNameBytesMax;
  size_t mapped = FrameworkNames::kMappedMax;
};

// Reads the metadata events of a whole stream; of chunks without any, the dictionary alone. Chunks
// that cannot be read are passed over.
absl::StatusOr<FrameworkNames> ReadFrameworkNames(ChunkSource& source,
                                                  const StreamDescription& stream,
                                                  FrameworkRoom& room);

// The text of an attribute's value, whatever its type: "123", "Spans", "-1", "true".
std::string AttributeText(const ShapeKey& key, uint64_t value,
                          const std::vector<std::string_view>& strings);

// The ids by which framework records name their row.
std::string FrameworkProcessId(const TimelineRecord& record);
std::string FrameworkThreadId(const TimelineRecord& record);

// The value of a key of the record's start event; nullptr where it has no such key.
const uint64_t* FindAttribute(const TimelineRecord& record, KeyScope scope, std::string_view name,
                              const ShapeKey** key = nullptr);

}  // namespace neurontrace
