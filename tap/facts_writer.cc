// SPDX-License-Identifier: Apache-2.0
#include "tap/facts_writer.h"

#include <stdio.h>
#include <string.h>

#include <atomic>

#include "lib/base/crc32c.h"

namespace neurontrace::tap {

void FactsWriter::Attach(uint8_t* area, TapBufferCounters* counters) {
  area_ = area;
  counters_ = counters;
  generation_ = 0;
  used_ = 0;
}

void FactsWriter::Add(const char* key, const char* value, uint64_t value_bytes) {
  const uint64_t key_bytes = strlen(key);
  const uint64_t needed = sizeof(TapFactEntry) + key_bytes + value_bytes;
  if (key_bytes > UINT16_MAX || needed > sizeof scratch_ - used_) {
    counters_->facts_truncated.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  TapFactEntry entry = {};
  entry.key_bytes = static_cast<uint16_t>(key_bytes);
  entry.value_bytes = static_cast<uint32_t>(value_bytes);
  memcpy(scratch_ + used_, &entry, sizeof entry);
  memcpy(scratch_ + used_ + sizeof entry, key, key_bytes);
  memcpy(scratch_ + used_ + sizeof entry + key_bytes, value, value_bytes);
  used_ += static_cast<uint32_t>(needed);
}

void FactsWriter::Add(const char* key, const char* value) { Add(key, value, strlen(value)); }

void FactsWriter::AddNumber(const char* key, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value));
  Add(key, text);
}

void FactsWriter::Publish() {
  auto* header = reinterpret_cast<TapFactsHeader*>(area_);
  // The fence keeps the writes below behind the odd generation: a reader that sees any of them also
  // sees that the area is being written.
  header->generation.store(++generation_, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  header->used_bytes = used_;
  header->crc32c = Crc32c(scratch_, used_);
  memcpy(area_ + sizeof *header, scratch_, used_);
  header->generation.store(++generation_, std::memory_order_release);
}

}  // namespace neurontrace::tap
