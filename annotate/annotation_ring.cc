// SPDX-License-Identifier: Apache-2.0
#include "annotate/annotation_ring.h"

#include <string.h>

namespace neurontrace::annotate {

namespace {

constexpr uint64_t kMask = kAnnotationRingBytes - 1;

// Copies bytes to a position of the ring, which may wrap around. Returns the position behind them.
uint64_t Put(uint8_t* data, uint64_t position, const void* bytes, uint64_t size) {
  const uint64_t offset = position & kMask;
  const uint64_t room = kAnnotationRingBytes - offset;
  const uint64_t first = size < room ? size : room;
  if (first > 0) memcpy(data + offset, bytes, first);
  if (size > first) memcpy(data, static_cast<const uint8_t*>(bytes) + first, size - first);
  return position + size;
}

}  // namespace

bool WriteAnnotation(AnnotationRingHeader& ring, AnnotationRecord& record,
                     const RecordTexts& texts) {
  record.length = static_cast<uint32_t>(sizeof record) + record.domain_bytes +
                  record.category_bytes + record.message_bytes;
  const uint64_t span = AnnotationRecordSpan(record.length);
  const uint64_t at = ring.write_pos.load(std::memory_order_relaxed);
  // Acquire: the agent has read what was at the place before.
  const uint64_t used = at - ring.read_pos.load(std::memory_order_acquire);
  // A position that is ahead of ours, or too far back, makes `used` too large as well.
  if (used > kAnnotationRingBytes || span > kAnnotationRingBytes - used) {
    ring.dropped.store(ring.dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
  }
  uint8_t* const data = reinterpret_cast<uint8_t*>(&ring) + kAnnotationRingHeaderBytes;
  uint64_t position = Put(data, at, &record, sizeof record);
  position = Put(data, position, texts.domain, record.domain_bytes);
  position = Put(data, position, texts.category, record.category_bytes);
  Put(data, position, texts.message, record.message_bytes);
  ring.write_pos.store(at + span, std::memory_order_release);
  return true;
}

}  // namespace neurontrace::annotate
