// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/export/exporter.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

using HostSampleTaker =
    std::function<absl::Status(const StreamIdentity& stream, const TimelineRecord& record)>;
using HbmSampleTaker =
    std::function<absl::Status(const HbmIdentity& memory, const HbmSample& sample)>;

// Reads parts of a capture once more, beside an export's batches: for files that have them in a
// place of their own, which can be as long as all the rest. Memory is bounded. A chunk that cannot
// be read is counted and warned about in the export's summary, once, whichever readings meet it.
// Whether there is anything it does not know before it looks: it takes nothing where there is none.
//
// To be called from Exporter::Finish alone, as the source belongs to the batches until then. Errors
// of the source and of `take`.
class SideReader {
 public:
  // Both outlive it.
  SideReader(ChunkSource& source, const ExportRequest& request)
      : source_(source), request_(request) {}

  // The selected events of one type of the capture's host samplers (lib/trace/host_samples.h), by
  // time.
  absl::Status ReadHostSamples(std::string_view event_type, const HostSampleTaker& take,
                               ExportSummary& summary);
  // What is in use of each device memory after each selected allocation or release of
  // [begin_ns, end_ns], by time.
  absl::Status ReadHbmSamples(uint64_t begin_ns, uint64_t end_ns, const HbmSampleTaker& take,
                              ExportSummary& summary);

 private:
  // How the batches are read.
  TimelineOptions Options() const;
  static void Note(const TimelineReader& reader, uint64_t& counted, ExportSummary& summary);

  ChunkSource& source_;
  const ExportRequest& request_;
  uint64_t unreadable_of_hosts_ = 0;  // that are counted
};

}  // namespace neurontrace
