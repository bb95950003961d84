// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_index_entry.h"

#include <optional>
#include <vector>

#include "aggregator/store/stored_bytes.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kFirstVersion = 1;
constexpr uint64_t kBytesVersion = 2;     // added the bytes of the chunk
constexpr uint64_t kAllTypesVersion = 3;  // added the event types that no foreign stop has
constexpr size_t kStopBytesMin = 3;       // each field having one at least

// With the event types of the stops alone, in the order in which they come first.
ForeignStops OfStopsAlone(const ForeignStops& stops) {
  ForeignStops alone;
  std::vector<std::optional<uint32_t>> numbers(stops.event_types.size());
  for (ForeignStops::Entry stop : stops.entries) {
    std::optional<uint32_t>& number = numbers[stop.type];
    if (!number) {
      number = static_cast<uint32_t>(alone.event_types.size());
      alone.event_types.push_back(stops.event_types[stop.type]);
    }
    stop.type = *number;
    alone.entries.push_back(stop);
  }
  return alone;
}

}  // namespace

std::string EncodeChunkIndexValue(const ChunkHeader& header, uint64_t bytes,
                                  const ForeignStops& stops, uint64_t version) {
  if (version < kAllTypesVersion && stops.has_all_types) {
    return EncodeChunkIndexValue(header, bytes, OfStopsAlone(stops), version);
  }
  StoredBytesWriter out(version);
  out.Uint(header.first_timestamp_ns);
  out.Uint(header.event_count);
  if (version >= kBytesVersion) out.Uint(bytes);
  if (version >= kAllTypesVersion) out.Bool(stops.has_all_types);
  out.Uint(stops.event_types.size());
  for (const std::string& type : stops.event_types) out.String(type);
  out.Uint(stops.entries.size());
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

absl::Status DecodeChunkIndexValue(std::string_view value, ChunkIndexEntry& entry,
                                   ForeignStops* stops) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  if (version < kFirstVersion || version > kChunkIndexVersion) {
    return DataLoss("chunk index: version {} where 1 to {} are known", version, kChunkIndexVersion);
  }
  entry.first_timestamp_ns = in.Uint();
  entry.event_count = in.Uint32();
  entry.bytes = version < kBytesVersion ? 0 : in.Uint();
  if (stops == nullptr) {
    return in.ok() ? absl::OkStatus() : DataLoss("chunk index: a value of {} bytes", value.size());
  }
  stops->has_all_types = version >= kAllTypesVersion && in.Bool();
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
      return DataLoss("chunk index: a stop of event type {} of {}", stop.type,
                      stops->event_types.size());
    }
  }
  if (!in.Finished()) return DataLoss("chunk index: its {} bytes do not fit", value.size());
  return absl::OkStatus();
}

}  // namespace neurontrace
