// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "agent/source/framework/trace_event_parser.h"

namespace neurontrace {

// Turns one element of a mapping file's "data" array into an event (lib/trace/framework_mapping.h
// says what it is like):
//
//   {"nrta_seq_id": 7, "framework_op_exec_ids": [{"seq_nr": 12, "th_id": 1, "stream_id": 0}]}
//
// Numbers may stand between quotes; a number of an operation may be absent or null, and then is
// null. Members of other names are passed over: what the file means is told by its version. One
// thread at a time; reused from entry to entry.
class MappingEntryParser {
 public:
  // The time that all its events get: entries have none.
  explicit MappingEntryParser(uint64_t time_ns);
  ~MappingEntryParser();
  MappingEntryParser(MappingEntryParser&&) noexcept;
  MappingEntryParser& operator=(MappingEntryParser&&) noexcept;

  // `element` must be followed by ElementCutter::kPaddingBytes readable bytes. The event holds
  // until the next call. INVALID_ARGUMENT for what is no such entry, RESOURCE_EXHAUSTED for more
  // than limits::kMappingOperationsPerEntryMax operations.
  absl::Status Parse(std::string_view element, FrameworkEvent& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
