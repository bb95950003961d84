// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "agent/source/framework/trace_event_parser.h"

namespace neurontrace {

// Turns one element of a mapping file's "data" array into an event (lib/trace/framework_mapping.h
// describes the file):
//
// {"nrta_seq_id": 7, "framework_op_exec_ids": [{"seq_nr": 12, "th_id": 1, "stream_id": 0}]}
//
// Numbers may be in quotation marks; a number of an operation may be absent or null, and is null
// then. Members of other names are ignored, as the file's version decides what it means. Used by
// one thread at a time; reused from entry to entry.
class MappingEntryParser {
 public:
  // `time_ns` becomes the time of all events, as entries have none.
  explicit MappingEntryParser(uint64_t time_ns);
  ~MappingEntryParser();
  MappingEntryParser(MappingEntryParser&&) noexcept;
  MappingEntryParser& operator=(MappingEntryParser&&) noexcept;

  // Parses `element`, which must be followed by ElementCutter::kPaddingBytes readable bytes. The
  // event is valid until the next call. Fails with INVALID_ARGUMENT for anything but an entry, and
  // with RESOURCE_EXHAUSTED for more than limits::kMappingOperationsPerEntryMax operations.
  absl::Status Parse(std::string_view element, FrameworkEvent& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
