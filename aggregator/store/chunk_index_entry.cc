// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_index_entry.h"

#include "aggregator/store/stored_bytes.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Each of the three fields of a stop has at least one byte. Bounds the memory of a damaged count.
constexpr size_t kStopBytesMin = 3;

}  // namespace

// The same chunk always has the same value, which StreamCheck relies on.
std::string EncodeChunkIndexValue(const ChunkHeader& header, uint64_t bytes,
                                  const ForeignStops& stops) {
  StoredBytesWriter out(kChunkIndexVersion);
  out.Uint(header.first_timestamp_ns);
  out.Uint(header.event_count);
  out.Uint(bytes);
  out.Bool(stops.has_all_types);
  out.Uint(stops.event_types.size());
  for (const std::string& type : stops.event_types) out.String(type);
  out.Uint(stops.entries.size());
  // Unsigned differences wrap and zigzag keeps small negative ones short; timestamps never
  // decrease.
  uint64_t tracking_id = 0;
  uint64_t timestamp_ns = header.first_timestamp_ns;
  for (const ForeignStops::Entry& stop : stops.entries) {
    out.Uint(stop.type);
    out.Int(static_cast<int64_t>(stop.tracking_id - tracking_id));
    out.Uint(stop.timestamp_ns - timestamp_ns);
    tracking_id = stop.tracking_id;
    timestamp_ns = stop.timestamp_ns;
  }
  return out.Take();
}

// Most readers need no stops, so those come last and are decoded only on request.
absl::Status DecodeChunkIndexValue(std::string_view value, ChunkIndexEntry& entry,
                                   ForeignStops* stops) {
  StoredBytesReader in(value);
  if (const uint64_t version = in.Uint(); version != kChunkIndexVersion) {
    return DataLoss("chunk index: unknown version {}, this program reads {}", version,
                    kChunkIndexVersion);
  }
  entry.first_timestamp_ns = in.Uint();
  entry.event_count = in.Uint32();
  entry.bytes = in.Uint();
  if (stops == nullptr) {
    return in.ok() ? absl::OkStatus()
                   : DataLoss("chunk index: malformed value of {} bytes", value.size());
  }
  stops->has_all_types = in.Bool();
  // The vectors keep the memory of the earlier entry. Count bounds both sizes by the bytes that are
  // left.
  stops->event_types.resize(in.Count());
  for (std::string& type : stops->event_types) type.assign(in.View());
  stops->entries.resize(in.Count(kStopBytesMin));
  uint64_t tracking_id = 0;
  uint64_t timestamp_ns = entry.first_timestamp_ns;
  for (ForeignStops::Entry& stop : stops->entries) {
    stop.type = in.Uint32();
    tracking_id += static_cast<uint64_t>(in.Int());
    timestamp_ns += in.Uint();
    stop.tracking_id = tracking_id;
    stop.timestamp_ns = timestamp_ns;
    if (stop.type >= stops->event_types.size()) {
      return DataLoss("chunk index: a stop has event type {}, but there are only {}", stop.type,
                      stops->event_types.size());
    }
  }
  if (!in.Finished()) return DataLoss("chunk index: malformed value of {} bytes", value.size());
  return absl::OkStatus();
}

}  // namespace neurontrace
