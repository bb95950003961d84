// SPDX-License-Identifier: Apache-2.0
// Owns the memfd of tap/buffer_format.h and its mapping in this process. The mapping is not
// inherited by forked children. Used by the tap's thread alone.
#pragma once

#include "tap/buffer_format.h"

namespace neurontrace::tap {

// The ring size that `text` (NEURONTRACE_TAP_BUFFER_BYTES, may be null) asks for: the next power of
// two within the limits; the default where it says nothing or nonsense.
uint64_t RingBytesFromText(const char* text);

class SharedBuffer {
 public:
  // Makes, seals and maps the file; false, with nothing kept, where the system refuses.
  bool Create(uint64_t ring_bytes, uint64_t realtime_ns);
  void Destroy();
  // Gives the memory of the ring back to the system; it reads as zeros until written again.
  void ReleaseRingPages();

  bool valid() const { return base_ != nullptr; }
  int fd() const { return fd_; }
  uint64_t total_bytes() const { return kTapRingOffset + ring_bytes_; }
  uint64_t ring_bytes() const { return ring_bytes_; }
  TapBufferHeader* header() const { return reinterpret_cast<TapBufferHeader*>(base_); }
  uint8_t* facts() const { return base_ + kTapFactsOffset; }
  uint8_t* ring() const { return base_ + kTapRingOffset; }

 private:
  int fd_ = -1;
  uint8_t* base_ = nullptr;
  uint64_t ring_bytes_ = 0;
};

// Field 22 of /proc/self/stat, or 0 where it cannot be read.
uint64_t ProcessStartTicks();

}  // namespace neurontrace::tap
