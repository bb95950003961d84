// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "annotate/annotation_format.h"
#include "annotate/annotation_ring.h"
#include "tap/shared_buffer.h"

namespace neurontrace {

// For tests: the process's side of the shared buffer.
class FakeAnnotations {
 public:
  FakeAnnotations()
      : memory_(tap::MapSealedMemfd("fake_annotations", kAnnotationBufferBytes, &memfd_)) {
    if (memory_ == nullptr) std::abort();
    InitAnnotationHeader(header());
  }
  ~FakeAnnotations() {
    munmap(memory_, kAnnotationBufferBytes);
    close(memfd_);
  }
  FakeAnnotations(const FakeAnnotations&) = delete;
  FakeAnnotations& operator=(const FakeAnnotations&) = delete;

  // Writes a record with `record`'s numbers to a ring; returns whether there was room.
  bool Write(AnnotationRecord record, std::string_view message, std::string_view domain = "",
             std::string_view category = "", uint32_t ring_index = 0) {
    record.message_bytes = static_cast<uint16_t>(message.size());
    record.domain_bytes = static_cast<uint8_t>(domain.size());
    record.category_bytes = static_cast<uint8_t>(category.size());
    return annotate::WriteAnnotation(ring(ring_index), record,
                                     {domain.data(), category.data(), message.data()});
  }
  static AnnotationRecord Make(AnnotationType type, uint64_t realtime_ns, uint16_t level = 0) {
    AnnotationRecord record = {};
    record.type = static_cast<uint8_t>(type);
    record.realtime_ns = realtime_ns;
    record.level = level;
    record.thread_id = 77;
    record.recording = 1;
    return record;
  }

  AnnotationBufferHeader& header() { return *reinterpret_cast<AnnotationBufferHeader*>(memory_); }
  AnnotationRingHeader& ring(uint32_t index) {
    return *reinterpret_cast<AnnotationRingHeader*>(memory_ + kAnnotationHeaderBytes +
                                                    index * kAnnotationRingSpan);
  }
  char* data(uint32_t index) {
    return reinterpret_cast<char*>(&ring(index)) + kAnnotationRingHeaderBytes;
  }
  int memfd() const { return memfd_; }

 private:
  int memfd_ = -1;
  uint8_t* const memory_;
};

}  // namespace neurontrace
