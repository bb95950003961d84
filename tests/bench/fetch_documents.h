// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// Fetch documents like those of a busy worker: executions with their nested spans, hardware events,
// collectives, tensor and memory events, in the runtime's own order of keys, about 350 bytes an
// event. The same for the same arguments.
struct FetchDocuments {
  std::vector<std::string> texts;  // each followed by 64 bytes of zero that are not counted below
  std::vector<size_t> sizes;
  uint64_t events = 0;
  uint64_t bytes = 0;
};
FetchDocuments MakeFetchDocuments(uint32_t cores, uint32_t documents, uint32_t events_per_document);

}  // namespace neurontrace
