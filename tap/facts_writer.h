// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tap/buffer_format.h"

namespace neurontrace::tap {

// Composes the facts area: key and value pairs that an agent reads whenever it attaches. Composed
// in private memory, then published under a seqlock. One thread.
class FactsWriter {
 public:
  // `area` is kTapFactsBytes of shared memory and must outlive the writer.
  void Attach(uint8_t* area, TapBufferCounters* counters);

  // Begin, Add each fact, Publish: a fact that is not added again disappears. An entry that does
  // not fit is omitted and counted.
  void Begin() { used_ = 0; }
  void Add(const char* key, const char* value, uint64_t value_bytes);
  void Add(const char* key, const char* value);
  void AddNumber(const char* key, uint64_t value);
  void Publish();

 private:
  uint8_t* area_ = nullptr;
  TapBufferCounters* counters_ = nullptr;
  uint64_t generation_ = 0;  // ours; never read back
  uint32_t used_ = 0;
  uint8_t scratch_[kTapFactsBytes - sizeof(TapFactsHeader)];  // `used_` bytes of it are valid
};

}  // namespace neurontrace::tap
