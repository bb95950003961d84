// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// What the metadata events of one framework trace file call its processes and threads. Process and
// thread ids are kept as text, because files have both numbers and words for them ("Spans").
struct FrameworkNames {
  static constexpr size_t kRowsMax = 65'536;  // further ones keep their ids for a name

  struct Process {
    std::string name;
    std::string labels;
  };
  std::map<std::string, Process> processes;                            // by process id
  std::map<std::pair<std::string, std::string>, std::string> threads;  // by process, thread id
};

// Reads the metadata events of a whole stream; of chunks without any, the dictionary alone. Chunks
// that cannot be read are passed over.
absl::StatusOr<FrameworkNames> ReadFrameworkNames(ChunkSource& source,
                                                  const StreamDescription& stream);

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
