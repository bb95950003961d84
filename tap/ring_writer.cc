// SPDX-License-Identifier: Apache-2.0
// The writer keeps its own positions and counts. It publishes write_pos to the shared header and
// never reads it back, as an agent may have changed it. Of the agent's read_pos it accepts only
// values that are multiples of 8, do not run backwards and do not pass write_pos.
#include "tap/ring_writer.h"

#include <string.h>

#include "lib/base/crc32c.h"

namespace neurontrace::tap {

namespace {

// Adds to a counter of the shared header.
void Count(std::atomic<uint64_t>* counter, uint64_t by) {
  // One writer: a plain load and store are enough and cheaper than a locked add.
  counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

void RingWriter::Attach(TapBufferHeader* header, uint8_t* ring, uint64_t ring_bytes) {
  header_ = header;
  ring_ = ring;
  ring_bytes_ = ring_bytes;
}

void RingWriter::SetCapture(const uint8_t* capture_id) {
  if (capture_id != nullptr) {
    memcpy(capture_id_, capture_id, sizeof capture_id_);
  } else {
    memset(capture_id_, 0, sizeof capture_id_);
  }
}

uint64_t RingWriter::FreeBytes() {
  const uint64_t claimed = header_->read_pos.load(std::memory_order_acquire);
  // The agent may write any value. An invalid one is ignored: the ring looks as full as before, and
  // at worst the agent loses its own data.
  const bool valid = claimed >= read_pos_ && claimed <= write_pos_ && claimed % 8 == 0;
  if (valid) {
    read_pos_ = claimed;
  } else {
    Count(&header_->counters.invalid_read_pos, 1);
  }
  return ring_bytes_ - (write_pos_ - read_pos_);
}

uint64_t RingWriter::RoomForDocument() {
  const uint64_t free_bytes = FreeBytes();
  // The header, and the padding behind the payload.
  const uint64_t taken = kTapControlReserveBytes + sizeof(TapRecordHeader) + kTapRecordAlignment;
  if (free_bytes <= taken) return 0;
  const uint64_t room = free_bytes - taken;
  return room < kTapRecordPayloadBytesMax ? room : kTapRecordPayloadBytesMax;
}

bool RingWriter::AppendDocument(uint32_t nc_idx, uint16_t flags, uint64_t realtime_ns,
                                const char* json, uint64_t json_bytes) {
  if (json_bytes > RoomForDocument()) return false;
  // Losses precede the document, so that a reader knows of them when it meets the hole in sequence
  // numbers.
  FlushLosses(realtime_ns);
  TapRecordHeader record = {};
  record.type = static_cast<uint16_t>(TapRecordType::kFetchDocument);
  record.flags = flags;
  record.nc_idx = nc_idx;
  record.host_realtime_ns = realtime_ns;
  // Records of losses took bytes of the reserve, which is not counted in the room for documents.
  if (!Append(&record, json, json_bytes, nullptr, 0, FreeBytes())) return false;
  ++documents_;
  Count(&header_->counters.documents, 1);
  Count(&header_->counters.document_bytes, json_bytes);
  return true;
}

bool RingWriter::AppendControl(TapRecordType type, uint16_t flags, uint64_t realtime_ns,
                               const void* head, uint64_t head_bytes, const void* tail,
                               uint64_t tail_bytes) {
  return AppendAbout(kTapNoCore, type, flags, realtime_ns, head, head_bytes, tail, tail_bytes);
}

bool RingWriter::AppendAbout(uint32_t nc_idx, TapRecordType type, uint16_t flags,
                             uint64_t realtime_ns, const void* head, uint64_t head_bytes,
                             const void* tail, uint64_t tail_bytes) {
  TapRecordHeader record = {};
  record.type = static_cast<uint16_t>(type);
  record.flags = flags;
  record.nc_idx = nc_idx;
  record.host_realtime_ns = realtime_ns;
  if (Append(&record, head, head_bytes, tail, tail_bytes, FreeBytes())) return true;
  Count(&header_->counters.refused_control_records, 1);
  return false;
}

TapLoss* RingWriter::LossOf(uint32_t nc_idx, uint64_t realtime_ns) {
  uint32_t at = 0;
  while (at < loss_count_ && losses_[at].nc_idx != nc_idx) ++at;
  // There are never more cores than this; the line keeps the index in range in any case.
  if (at == kLossesMax) at = kLossesMax - 1;
  if (at == loss_count_) {
    ++loss_count_;
    losses_[at] = {nc_idx, {}};
    losses_[at].loss.first_realtime_ns = realtime_ns;
  }
  losses_[at].loss.last_realtime_ns = realtime_ns;
  return &losses_[at].loss;
}

void RingWriter::CountRefused(uint32_t nc_idx, uint64_t realtime_ns,
                              const RefusedDocument& document) {
  Count(&header_->counters.refused_documents, 1);
  Count(&header_->counters.refused_bytes, document.json_bytes);
  Count(&header_->counters.refused_events, document.events);
  ++refused_documents_;
  TapLoss* const loss = LossOf(nc_idx, realtime_ns);
  loss->refused_documents += 1;
  loss->refused_bytes += document.json_bytes;
  loss->refused_events += document.events;
  if (document.ids_end > loss->refused_ids_end) loss->refused_ids_end = document.ids_end;
}

void RingWriter::CountDeferred(uint32_t nc_idx, uint64_t realtime_ns) {
  Count(&header_->counters.deferred_fetches, 1);
  LossOf(nc_idx, realtime_ns)->deferred_fetches += 1;
}

void RingWriter::CountFailed(uint32_t nc_idx, uint64_t realtime_ns) {
  Count(&header_->counters.fetch_errors, 1);
  LossOf(nc_idx, realtime_ns)->failed_fetches += 1;
}

void RingWriter::FlushLosses(uint64_t realtime_ns) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < loss_count_; ++i) {
    const CoreLoss& one = losses_[i];
    if (!AppendAbout(one.nc_idx, TapRecordType::kLoss, 0, realtime_ns, &one.loss, sizeof one.loss,
                     nullptr, 0)) {
      // Kept for the next time.
      losses_[left++] = one;
    }
  }
  loss_count_ = left;
}

bool RingWriter::Append(TapRecordHeader* record, const void* head, uint64_t head_bytes,
                        const void* tail, uint64_t tail_bytes, uint64_t free_bytes) {
  const uint64_t payload = head_bytes + tail_bytes;
  if (payload > kTapRecordPayloadBytesMax) return false;
  const uint64_t length = sizeof *record + payload;
  const uint64_t span = TapRecordSpan(length);
  if (span > free_bytes) return false;

  memcpy(record->capture_id, capture_id_, sizeof record->capture_id);
  record->length = static_cast<uint32_t>(length);
  const auto* bytes = reinterpret_cast<const uint8_t*>(record);
  // The checksum is computed from private memory: the shared ring may change while it is read.
  uint32_t crc = Crc32c(bytes + kTapRecordCrcOffset, sizeof *record - kTapRecordCrcOffset);
  crc = ExtendCrc32c(crc, head, head_bytes);
  record->crc32c = ExtendCrc32c(crc, tail, tail_bytes);

  Put(write_pos_, record, sizeof *record);
  Put(write_pos_ + sizeof *record, head, head_bytes);
  Put(write_pos_ + sizeof *record + head_bytes, tail, tail_bytes);
  write_pos_ += span;
  // Release: an agent that reads the position also sees the bytes of the record.
  header_->write_pos.store(write_pos_, std::memory_order_release);
  return true;
}

void RingWriter::Put(uint64_t position, const void* data, uint64_t size) {
  if (size == 0) return;
  const uint64_t offset = position & (ring_bytes_ - 1);
  const uint64_t until_end = ring_bytes_ - offset;
  const uint64_t first = size < until_end ? size : until_end;
  memcpy(ring_ + offset, data, first);
  memcpy(ring_, static_cast<const uint8_t*>(data) + first, size - first);
}

}  // namespace neurontrace::tap
