// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tap/buffer_format.h"

namespace neurontrace::tap {

// Returns the ring size for `text` (NEURONTRACE_TAP_BUFFER_BYTES, may be null): the next power of
// two within the limits, or the default if it is not a number.
uint64_t RingBytesFromText(const char* text);

// Creates a memfd of `bytes`, all zero, sealed against resizing, and maps it; forked children do
// not inherit the mapping. Returns the mapping and sets `fd`, or returns null, keeping nothing, if
// the system refuses. `name` is what /proc/PID/maps shows.
uint8_t* MapSealedMemfd(const char* name, uint64_t bytes, int* fd);

// Owns the memfd of tap/buffer_format.h and its mapping in this process. Used by the tap's thread
// alone.
class SharedBuffer {
 public:
  // Creates, seals and maps the file. Returns false, keeping nothing, if the system refuses.
  bool Create(uint64_t ring_bytes, uint64_t realtime_ns);
  // Unmaps and closes the file. The agent's own mapping stays valid.
  void Destroy();
  // Returns the memory of the ring to the system; it reads as zeros until it is written again. Only
  // while the ring is empty.
  void ReleaseRingPages();

  // Returns true between Create and Destroy. Otherwise fd() is -1 and the pointers below must not
  // be used.
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

// Returns field 22 of /proc/self/stat, the start time of the process in clock ticks, or 0 if it
// cannot be read.
uint64_t ProcessStartTicks();

}  // namespace neurontrace::tap
