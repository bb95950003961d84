// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/foreign_stops.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/event_chunk.h"
#include "lib/wire/chunk_envelope.h"
#include "simulate/fleet_model.h"

namespace neurontrace {

// Writes a simulated run as a capture of a new store, with the event types and attributes of the
// runtime. Each chunk passes the validator of the wire. Holds the events of a few steps. One
// thread.
class StoreWriter final : public FleetSink {
 public:
  // Creates the store. Fails with ALREADY_EXISTS if there is one in the directory, and otherwise
  // with the disk's reason. The model must outlive it.
  static absl::StatusOr<std::unique_ptr<StoreWriter>> Create(const std::string& directory,
                                                             const FleetModel& model);
  ~StoreWriter() override;

  // Errors are kept for Finish.
  void Take(std::span<const FleetEvent> events) override;
  // Writes what is left, the ends of the streams and the capture's record. Called after the model's
  // Finish.
  absl::Status Finish();

  const CaptureId& capture_id() const { return record_.id; }
  uint64_t events_written() const { return events_written_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  // A core's stream so far.
  struct Stream {
    std::vector<FleetEvent> events;  // not yet written
    uint64_t sequence = 0;
    uint64_t rows = 0;
  };
  class Encoder;

  StoreWriter(std::unique_ptr<Store> store, const FleetModel& model);
  absl::Status Begin();
  // Writes the events of all ranks, a chunk each.
  absl::Status WriteAll();
  // Writes a chunk with the rank's events; without any, a canary or the stream's end.
  absl::Status WriteChunk(uint32_t rank, ChunkHeader header);
  absl::Status Put();
  void AddParts();

  const std::unique_ptr<Store> store_;
  const FleetModel& model_;
  CaptureRecord record_;
  std::unique_ptr<Encoder> encoder_;
  ChunkValidator validator_;
  ForeignStopFinder foreign_stops_;
  std::vector<Stream> streams_;       // by rank
  std::vector<ReceivedChunk> group_;  // not yet put
  size_t waiting_ = 0;                // events in streams_
  uint64_t events_written_ = 0;
  uint64_t bytes_written_ = 0;
  absl::Status status_;
};

}  // namespace neurontrace
