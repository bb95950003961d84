// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/trace/chunk_header.h"

namespace neurontrace {

// A stored chunk of a watch. A plain value.
struct WatchedChunk {
  ChunkHeader header;
  std::string columns;  // compressed
  // There was no room for its columns: its events are not read.
  bool is_cut = false;
  uint64_t arrival_ns = 0;            // monotonic
  uint64_t arrival_reference_ns = 0;  // reference time
};

// Hands chunks from the thread that stores them to the one that reads them, and never waits for the
// latter. Beyond limits::kWatchQueueBytesMax a chunk comes without its columns, beyond
// limits::kWatchQueueChunksMax not at all; its core's next chunk shows that one is missing. Any
// thread.
class WatchQueue {
 public:
  void Push(WatchedChunk chunk);
  // Waits until there are chunks, until Close, or for `patience`, and returns up to `count` chunks
  // in the order in which they came.
  std::vector<WatchedChunk> Take(size_t count, std::chrono::nanoseconds patience);
  // Makes waiting end, for good.
  void Close();
  bool is_closed() const;

  size_t size() const;
  // Chunks whose events were dropped since the start.
  uint64_t dropped() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<WatchedChunk> chunks_ NT_GUARDED_BY(mutex_);
  size_t bytes_ NT_GUARDED_BY(mutex_) = 0;  // of columns
  uint64_t dropped_ NT_GUARDED_BY(mutex_) = 0;
  bool is_closed_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace
