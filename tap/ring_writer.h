// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tap/buffer_format.h"

// Writes records into the ring of a shared buffer: the producer's side of a single-producer,
// single-consumer byte ring (docs/formats/tap_buffer.md). Never waits: a document without room is
// refused and counted, and reported in a LOSS record of its core once there is room. Trusts nothing
// that the consumer can write. One thread.
namespace neurontrace::tap {

// The facts about a document that found no room.
struct RefusedDocument {
  uint64_t json_bytes;
  uint64_t events;
  uint64_t ids_end;  // one more than the highest nc_local_id in it; 0: it has none
};

class RingWriter {
 public:
  // `header` and `ring` (header->ring_bytes of it, a power of two) must outlive the writer.
  void Attach(TapBufferHeader* header, uint8_t* ring, uint64_t ring_bytes);

  // Sets the capture of the records that follow; null: none.
  void SetCapture(const uint8_t* capture_id);

  // Writes one fetch document, preceded by records of earlier losses. Returns false if there is no
  // room: the document is lost, and the caller calls CountRefused.
  bool AppendDocument(uint32_t nc_idx, uint16_t flags, uint64_t realtime_ns, const char* json,
                      uint64_t json_bytes);

  // Writes a record about the trace itself with payload `head`, then `tail`. May use the control
  // reserve. Returns false, and counts the record, if even that is full.
  bool AppendControl(TapRecordType type, uint16_t flags, uint64_t realtime_ns, const void* head,
                     uint64_t head_bytes, const void* tail = nullptr, uint64_t tail_bytes = 0);

  // Returns the largest size in JSON bytes that AppendDocument accepts now.
  uint64_t RoomForDocument();

  // Record other outcomes of fetches of a core (or kTapNoCore): a document was refused, a fetch was
  // put off because there was no room, a fetch failed.
  void CountRefused(uint32_t nc_idx, uint64_t realtime_ns, const RefusedDocument& document);
  void CountDeferred(uint32_t nc_idx, uint64_t realtime_ns);
  void CountFailed(uint32_t nc_idx, uint64_t realtime_ns);

  // Writes these outcomes since the last time as LOSS records, one for each core. At the end of a
  // trace; may use the control reserve, which has room for all of them.
  void FlushLosses(uint64_t realtime_ns);

  // Returns whether the agent has committed everything, so that no reader needs the ring's bytes
  // any more.
  bool empty() { return FreeBytes() == ring_bytes_; }
  uint64_t write_pos() const { return write_pos_; }
  // Returns the tap's own counts; the counters in the shared header may be overwritten by the
  // agent.
  uint64_t documents() const { return documents_; }
  uint64_t refused_documents() const { return refused_documents_; }

 private:
  // Reads and validates read_pos. Returns the bytes of the ring that are free.
  uint64_t FreeBytes();
  // Returns the open losses of a core, which begin now if it has none.
  TapLoss* LossOf(uint32_t nc_idx, uint64_t realtime_ns);
  // Writes a record about a core, or about all (kTapNoCore). Returns false, and counts the record
  // as refused, if it has no room.
  bool AppendAbout(uint32_t nc_idx, TapRecordType type, uint16_t flags, uint64_t realtime_ns,
                   const void* head, uint64_t head_bytes, const void* tail, uint64_t tail_bytes);
  // Writes a record if its span fits into `free_bytes`, and publishes it.
  bool Append(TapRecordHeader* record, const void* head, uint64_t head_bytes, const void* tail,
              uint64_t tail_bytes, uint64_t free_bytes);
  // Copies to a position of the ring, wrapping around its end.
  void Put(uint64_t position, const void* data, uint64_t size);

  TapBufferHeader* header_ = nullptr;
  uint8_t* ring_ = nullptr;
  uint64_t ring_bytes_ = 0;
  uint64_t write_pos_ = 0;  // ours; the copy in the header is only ever written
  uint64_t read_pos_ = 0;   // the last valid value from the consumer
  uint64_t documents_ = 0;
  uint64_t refused_documents_ = 0;
  uint8_t capture_id_[kTapCaptureIdBytes] = {};

  // Losses since the last FlushLosses: one entry for each core, and one for all cores at once.
  // Together they fit the control reserve.
  struct CoreLoss {
    uint32_t nc_idx;
    TapLoss loss;
  };
  static constexpr uint32_t kLossesMax = kTapMaxCores + 1;
  static_assert(kLossesMax * TapRecordSpan(sizeof(TapRecordHeader) + sizeof(TapLoss)) <
                kTapControlReserveBytes);
  uint32_t loss_count_ = 0;
  CoreLoss losses_[kLossesMax];  // the first loss_count_; the others' memory is never touched
};

}  // namespace neurontrace::tap
