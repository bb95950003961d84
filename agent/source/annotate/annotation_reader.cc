// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/annotation_reader.h"

#include <sys/mman.h>

#include <atomic>
#include <cassert>
#include <cstring>
#include <string_view>

#include "agent/source/neuron/tap/sealed_memory.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {

AnnotationReader::~AnnotationReader() {
  if (mapped_) munmap(base_, kAnnotationBufferBytes);
}

absl::StatusOr<std::unique_ptr<AnnotationReader>> AnnotationReader::Open(int memfd) {
  ASSIGN_OR_RETURN(
      const SealedMemory memory,
      MapSealedMemory(memfd, kAnnotationBufferBytes, kAnnotationBufferBytes, "annotation library"));
  std::unique_ptr<AnnotationReader> reader(new AnnotationReader(memory.base, true));
  RETURN_IF_ERROR(reader->CheckHeader());
  reader->inode_ = memory.inode;
  return reader;
}

absl::StatusOr<std::unique_ptr<AnnotationReader>> AnnotationReader::Over(void* memory) {
  std::unique_ptr<AnnotationReader> reader(
      new AnnotationReader(static_cast<uint8_t*>(memory), false));
  RETURN_IF_ERROR(reader->CheckHeader());
  return reader;
}

// Only one layout exists in format 1, so the fields are compared and not followed. Each is loaded
// once, as the process may change it between two loads. Reading continues where an earlier agent
// ended.
absl::Status AnnotationReader::CheckHeader() {
  AnnotationBufferHeader& about = header();
  const uint64_t magic = LoadOnce(about.magic);
  const uint32_t version = LoadOnce(about.format_version);
  if (magic != kAnnotationBufferMagic) {
    return InvalidArgument("the annotation library's buffer has a wrong magic number");
  }
  if (version != kAnnotationFormatVersion) {
    return InvalidArgument(
        "the annotation library's buffer has format {}, but this agent reads {}; use a library and "
        "an agent of the same release",
        version, kAnnotationFormatVersion);
  }
  if (LoadOnce(about.header_bytes) != kAnnotationHeaderBytes ||
      LoadOnce(about.ring_count) != kAnnotationRings ||
      LoadOnce(about.ring_header_bytes) != kAnnotationRingHeaderBytes ||
      LoadOnce(about.ring_bytes) != kAnnotationRingBytes) {
    return InvalidArgument("the annotation library's buffer does not have the layout of format 1");
  }
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    positions_[i] = ring(i).read_pos.load(std::memory_order_acquire);
    if (positions_[i] % kAnnotationRecordAlignment != 0) {
      return InvalidArgument("ring {} has an invalid read position of {}", i, positions_[i]);
    }
    dropped_[i] = ring(i).dropped.load(std::memory_order_relaxed);
  }
  dropped_[kAnnotationRings] = about.dropped_without_ring.load(std::memory_order_relaxed);
  return absl::OkStatus();
}

void AnnotationReader::CopyOut(uint32_t index, uint64_t position, char* to, size_t bytes) const {
  const uint8_t* const data =
      reinterpret_cast<const uint8_t*>(&ring(index)) + kAnnotationRingHeaderBytes;
  CopyFromRing(data, kAnnotationRingBytes, position, to, bytes);
}

absl::StatusOr<bool> AnnotationReader::Next(uint32_t index, ReadAnnotation& read) {
  assert(index < kAnnotationRings);
  const uint64_t at = positions_[index];
  const uint64_t written = ring(index).write_pos.load(std::memory_order_acquire);
  if (written == at) return false;
  // A position that moved back makes the difference too large as well.
  const uint64_t available = written - at;
  if (available > kAnnotationRingBytes || available % kAnnotationRecordAlignment != 0 ||
      available < sizeof(AnnotationRecord)) {
    return DataLoss("ring {}: the write position {} is invalid with {} read", index, written, at);
  }
  alignas(AnnotationRecord) char bytes[kAnnotationRecordBytesMax];
  CopyOut(index, at, bytes, sizeof(AnnotationRecord));
  AnnotationRecord& record = read.record;
  std::memcpy(&record, bytes, sizeof record);
  const uint64_t texts =
      uint64_t{record.domain_bytes} + record.category_bytes + record.message_bytes;
  if (record.length != sizeof record + texts || record.length > kAnnotationRecordBytesMax ||
      AnnotationRecordSpan(record.length) > available) {
    return DataLoss("ring {}: a record at {} has an invalid length of {}", index, at,
                    record.length);
  }
  CopyOut(index, at + sizeof record, bytes, texts);
  const std::string_view copied(bytes, texts);
  const size_t names = size_t{record.domain_bytes} + record.category_bytes;
  read.domain = CleanText(copied.substr(0, record.domain_bytes), record.domain_bytes);
  read.category =
      CleanText(copied.substr(record.domain_bytes, record.category_bytes), record.category_bytes);
  read.message = CleanText(copied.substr(names), record.message_bytes);
  positions_[index] = at + AnnotationRecordSpan(record.length);
  ring(index).read_pos.store(positions_[index], std::memory_order_release);
  return true;
}

absl::StatusOr<uint64_t> AnnotationReader::TakeDropped() {
  uint64_t sum = 0;
  for (uint32_t i = 0; i <= kAnnotationRings; ++i) {
    const uint64_t now = i < kAnnotationRings
                             ? ring(i).dropped.load(std::memory_order_relaxed)
                             : header().dropped_without_ring.load(std::memory_order_relaxed);
    // More than any process can drop between two calls: the counter was not counted.
    constexpr uint64_t kBelievableMax = uint64_t{1} << 40;
    if (now - dropped_[i] > kBelievableMax) {
      return DataLoss("a counter of dropped annotations moved from {} to {}", dropped_[i], now);
    }
    sum += now - dropped_[i];
    dropped_[i] = now;
  }
  return sum;
}

}  // namespace neurontrace
