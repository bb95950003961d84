// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_index_entry.h"

#include "aggregator/store/stored_bytes.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kEntryVersion = 2;  // added the bytes of the chunk
constexpr uint64_t kWithoutBytes = 1;

}  // namespace

std::string EncodeChunkIndexValue(const ChunkHeader& header, uint64_t bytes,
                                  const ForeignStops& stops) {
  StoredBytesWriter out(bytes == 0 ? kWithoutBytes : kEntryVersion);
  out.Uint(header.first_timestamp_ns);
  out.Uint(header.event_count);
  if (bytes != 0) out.Uint(bytes);
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
  if (version < kWithoutBytes || version > kEntryVersion) {
    return DataLoss("chunk index: version {} where 1 to {} are known", version, kEntryVersion);
  }
  entry.first_timestamp_ns = in.Uint();
  entry.event_count = in.Uint32();
  entry.bytes = version == kWithoutBytes ? 0 : in.Uint();
  if (stops == nullptr) {
    return in.ok() ? absl::OkStatus() : DataLoss("chunk index: a value of {} bytes", value.size());
  }
  stops->event_types.resize(in.Count());
  for (std::string& type : stops->event_types) type.assign(in.View());
  stops->entries.resize(in.Count());
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
