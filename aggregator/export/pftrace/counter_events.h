// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Writes the recorded counters: series of framework traces, and samples of hosts. Used by one
// thread at a time.
class CounterEvents {
 public:
  CounterEvents(TrackTable& tracks, PacketWriter& out) : tracks_(tracks), out_(out) {}

  // Writes a counter event of a framework's file.
  void Write(const TimelineRecord& record);
  // Writes a sample of a host's processors or memory.
  void WriteHostSample(const TimelineRecord& record);

 private:
  TrackTable& tracks_;
  PacketWriter& out_;
  TrackEventFields fields_;
};

}  // namespace neurontrace
