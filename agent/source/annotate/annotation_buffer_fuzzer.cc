// SPDX-License-Identifier: Apache-2.0
// Whatever a process writes into its buffer, the agent reads it without a fault, in bounded steps.
#include <cstdint>
#include <cstring>
#include <memory>

#include "agent/source/annotate/annotation_reader.h"
#include "agent/source/annotate/range_pairing.h"
#include "lib/trace/annotation_limits.h"

namespace neurontrace {
namespace {

// One for all runs, as it is large; the header and one ring are made again for each.
uint8_t* Memory() {
  static const std::unique_ptr<uint8_t[]> memory(new uint8_t[kAnnotationBufferBytes]());
  return memory.get();
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  uint64_t positions[3] = {};
  if (size < sizeof positions) return 0;
  std::memcpy(positions, data, sizeof positions);
  data += sizeof positions;
  size -= sizeof positions;
  InitAnnotationHeader(*reinterpret_cast<AnnotationBufferHeader*>(Memory()));
  auto& ring = *reinterpret_cast<AnnotationRingHeader*>(Memory() + kAnnotationHeaderBytes);
  // Positions near the end of the ring, so that records wrap around.
  ring.read_pos.store(positions[0] & ~uint64_t{7});
  ring.dropped.store(0);
  const auto reader = AnnotationReader::Over(Memory());
  if (!reader.ok()) return 0;
  uint8_t* const ring_data = reinterpret_cast<uint8_t*>(&ring) + kAnnotationRingHeaderBytes;
  for (size_t i = 0; i < size && i < kAnnotationRingBytes; ++i) {
    ring_data[((positions[0] & ~uint64_t{7}) + i) % kAnnotationRingBytes] = data[i];
  }
  // A plausible end of what was written, or any at all.
  const uint64_t written = (positions[0] & ~uint64_t{7}) + (size & ~size_t{7});
  ring.write_pos.store(positions[1] % 2 == 0 ? written : positions[1]);
  ring.dropped.store(positions[2]);
  RangePairing pairing;
  ReadAnnotation read;
  for (size_t i = 0; i <= kAnnotationRingBytes / sizeof(AnnotationRecord); ++i) {
    const auto found = (*reader)->Next(0, read);
    if (!found.ok() || !*found) break;
    const bool begins = read.record.type == static_cast<uint8_t>(AnnotationType::kPush) ||
                        read.record.type == static_cast<uint8_t>(AnnotationType::kStart);
    if (begins) {
      pairing.Begin(read);
    } else {
      pairing.End(read);
    }
    if (pairing.open() > limits::kAnnotationRangesOpenMax) __builtin_trap();
  }
  (void)(*reader)->TakeDropped();
  return 0;
}
