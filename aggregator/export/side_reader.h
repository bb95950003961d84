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

// Receives one sample; an error ends the reading. `record` is valid during the call only.
using HostSampleSink =
    std::function<absl::Status(const StreamIdentity& stream, const TimelineRecord& record)>;
// The same for a sample of device memory, with the memory that it belongs to.
using HbmSampleSink =
    std::function<absl::Status(const HbmIdentity& memory, const HbmSample& sample)>;

// Reads parts of a capture once more, in addition to an export's batches: for formats that have
// them in a place of their own, which may be as long as all the rest. Memory is bounded. A chunk
// that cannot be read is counted and warned about once in the export's summary, whichever readings
// meet it. It does not know beforehand whether there is anything: `take` is then never called.
//
// Only called from Exporter::Finish, on its thread, because until then the source belongs to the
// batches. Fails with errors of the source and of `take`.
class SideReader {
 public:
  // Both must outlive it.
  SideReader(ChunkSource& source, const ExportRequest& request)
      : source_(source), request_(request) {}

  // Passes the selected events of one type of the capture's host samplers
  // (lib/trace/host_samples.h) to `take`, by time.
  absl::Status ReadHostSamples(std::string_view event_type, const HostSampleSink& take,
                               ExportSummary& summary);
  // Passes what is in use of each device memory after each selected allocation or release in
  // [begin_ns, end_ns] to `take`, by time.
  absl::Status ReadHbmSamples(uint64_t begin_ns, uint64_t end_ns, const HbmSampleSink& take,
                              ExportSummary& summary);

 private:
  // Returns the options with which the batches are read.
  TimelineOptions Options() const;
  // Adds the reader's unreadable chunks beyond `counted`, and its new warnings, to the summary.
  static void Record(const TimelineReader& reader, uint64_t& counted, ExportSummary& summary);

  ChunkSource& source_;
  const ExportRequest& request_;
  // Those that the summary counts already.
  uint64_t unreadable_of_hosts_ = 0;
};

}  // namespace neurontrace
