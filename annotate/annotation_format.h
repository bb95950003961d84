// SPDX-License-Identifier: Apache-2.0
// The shared buffer of one process's annotations: what libneurontrace_annotate.so writes and the
// agent reads, through one sealed memfd.
//
//   [ header page, 4096 bytes | kAnnotationRings times: ring header, 4096 bytes, and its records ]
//
// Everything is little endian and naturally aligned; docs/formats/annotation_buffer.md describes it
// byte by byte. Each ring has one writer, a thread of the process, and one reader, the agent.
// Positions are byte offsets that only grow, as in tap/buffer_format.h: at all times
// `read_pos <= write_pos <= read_pos + kAnnotationRingBytes`. The two sides do not trust each
// other: the library reads nothing back but `read_pos`, and validates it; the agent copies a record
// out before it checks it.
//
// A record that does not fit is dropped and counted in its ring. The memory of a ring is allocated
// by the kernel when its thread first records.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace neurontrace {

inline constexpr uint64_t kAnnotationBufferMagic = 0x4655'424e'4e41'544eULL;  // "NTANNBUF"
inline constexpr uint32_t kAnnotationFormatVersion = 1;

// Threads that can record at a time. Beyond: their events are dropped and counted. The ring of a
// thread that has ended is given to another.
inline constexpr uint32_t kAnnotationRings = 64;
// Bytes of a ring, about 2,000 records without names of domain and category. Beyond: the newest is
// dropped, counted.
inline constexpr uint64_t kAnnotationRingBytes = uint64_t{256} << 10;
// Longer texts are cut between characters, with a flag.
inline constexpr uint32_t kAnnotationMessageBytesMax = 512;
inline constexpr uint32_t kAnnotationNameBytesMax = 64;  // of a domain or a category

inline constexpr uint64_t kAnnotationHeaderBytes = 4096;
inline constexpr uint64_t kAnnotationRingHeaderBytes = 4096;
inline constexpr uint64_t kAnnotationRingSpan = kAnnotationRingHeaderBytes + kAnnotationRingBytes;
inline constexpr uint64_t kAnnotationBufferBytes =
    kAnnotationHeaderBytes + kAnnotationRings * kAnnotationRingSpan;
inline constexpr uint64_t kAnnotationRecordAlignment = 8;
static_assert((kAnnotationRingBytes & (kAnnotationRingBytes - 1)) == 0, "offsets are masked");

// The first page of the file. The offsets are part of the format.
struct AnnotationBufferHeader {
  // Constant once the agent has the file.
  uint64_t magic;
  uint32_t format_version;
  uint32_t header_bytes;
  uint32_t ring_count;
  uint32_t ring_header_bytes;
  uint64_t ring_bytes;
  // Events of threads that found no ring; only grows.
  alignas(64) std::atomic<uint64_t> dropped_without_ring;
};
static_assert(offsetof(AnnotationBufferHeader, dropped_without_ring) == 64);

// Writes the constant fields of a new buffer. The magic number is last: a file that has it has a
// complete header.
inline void InitAnnotationHeader(AnnotationBufferHeader& header) {
  header.format_version = kAnnotationFormatVersion;
  header.header_bytes = kAnnotationHeaderBytes;
  header.ring_count = kAnnotationRings;
  header.ring_header_bytes = kAnnotationRingHeaderBytes;
  header.ring_bytes = kAnnotationRingBytes;
  header.magic = kAnnotationBufferMagic;
}

// The beginning of each ring's first page. Fields of one writer share no cache line with another's.
struct AnnotationRingHeader {
  // Written by the ring's thread, with release order after the bytes of a record.
  alignas(64) std::atomic<uint64_t> write_pos;
  std::atomic<uint64_t> dropped;  // records without room; only grows
  // Written by the agent: hostile to the library.
  alignas(64) std::atomic<uint64_t> read_pos;
};
static_assert(offsetof(AnnotationRingHeader, read_pos) == 64);
static_assert(sizeof(AnnotationRingHeader) <= kAnnotationRingHeaderBytes);

// Values are never reused.
enum class AnnotationType : uint8_t {
  kPush = 1,   // a range of its thread and domain begins; ranges of one thread and domain nest
  kPop = 2,    // the innermost one ends
  kMark = 3,   // a moment
  kStart = 4,  // a range of the process begins, which any thread may end
  kEnd = 5,    // the range `range_id` ends
};

// How `payload` is to be read. Values are never reused.
enum class AnnotationPayload : uint8_t {
  kNone = 0,
  kUint = 1,
  kInt = 2,
  kDouble = 3,  // the bit pattern; float values are widened
};

// Flags of a record.
inline constexpr uint16_t kAnnotationFlagMessageCut = 1;
// The payload has a type that the library does not know, and is left out.
inline constexpr uint16_t kAnnotationFlagPayloadUnknown = 2;
// `color` is set.
inline constexpr uint16_t kAnnotationFlagColor = 4;

// `level` of a kPop whose kPush was before the recording.
inline constexpr uint16_t kAnnotationNoLevel = 0xffff;

// One record: this, the domain's name, the category's name and the message, without padding in
// between. It occupies its length rounded up to kAnnotationRecordAlignment and may wrap around the
// end of the ring. The texts are the application's bytes, which need not be UTF-8.
struct AnnotationRecord {
  uint32_t length;  // of all of it, without the padding at its end
  uint8_t type;     // AnnotationType; a reader skips a type it does not know
  uint8_t payload_type;
  uint16_t level;        // kPush and kPop: how many ranges of its thread and domain are open below
  uint64_t realtime_ns;  // CLOCK_REALTIME
  uint64_t payload;
  uint64_t range_id;  // kStart and kEnd
  uint32_t thread_id;
  uint32_t
      recording;  // the number of the recording; ranges of different ones do not belong together
  uint32_t category;  // 0: none
  uint32_t color;     // ARGB, with kAnnotationFlagColor
  uint16_t domain;    // its index in the process; 0: the default domain
  uint16_t flags;
  uint8_t domain_bytes;
  uint8_t category_bytes;
  uint16_t message_bytes;
};
static_assert(sizeof(AnnotationRecord) == 56);

inline constexpr uint64_t kAnnotationRecordBytesMax =
    sizeof(AnnotationRecord) + 2 * kAnnotationNameBytesMax + kAnnotationMessageBytesMax;

// Returns the bytes that a record of this length occupies in the ring.
inline constexpr uint64_t AnnotationRecordSpan(uint64_t length) {
  return (length + (kAnnotationRecordAlignment - 1)) & ~(kAnnotationRecordAlignment - 1);
}

}  // namespace neurontrace
