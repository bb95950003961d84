// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/fetch_buffer.h"

#include <sys/mman.h>

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kPageBytes = 4096;
constexpr size_t kGivenBackMax = 1 << 16;
// Where the heap keeps a block's size. As a size this is nearly the whole address space, without
// the bit that marks a block as mapped: the C library refuses it.
constexpr uint64_t kNotAHeapBlock = 0xffffffff4e525451;

size_t MappingBytes(size_t text_bytes) {
  return (text_bytes + 1 + kHeaderBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

char* MapText(size_t mapping_bytes) {
  void* memory =
      mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* text = static_cast<char*>(memory) + kHeaderBytes;
  std::memcpy(text - sizeof(kNotAHeapBlock), &kNotAHeapBlock, sizeof(kNotAHeapBlock));
  return text;
}

void UnmapText(char* text, size_t mapping_bytes) { munmap(text - kHeaderBytes, mapping_bytes); }

}  // namespace

FetchBuffer::FetchBuffer(size_t bytes_expected) {
  const size_t mapping_bytes = MappingBytes(std::max<size_t>(bytes_expected, 64));
  base_ = MapText(mapping_bytes);
  if (base_ != nullptr) capacity_ = mapping_bytes - kHeaderBytes - 1;
}

FetchBuffer::~FetchBuffer() {
  if (base_ != nullptr) UnmapText(base_, capacity_ + kHeaderBytes + 1);
}

bool FetchBuffer::Grow(size_t bytes) {
  if (base_ == nullptr) return false;
  const size_t mapping_bytes = MappingBytes(std::max(size_ + bytes, capacity_ * 2));
  char* grown = MapText(mapping_bytes);
  if (grown != nullptr) std::memcpy(grown, base_, size_);
  UnmapText(base_, capacity_ + kHeaderBytes + 1);
  base_ = grown;
  capacity_ = grown == nullptr ? 0 : mapping_bytes - kHeaderBytes - 1;
  return grown != nullptr;
}

char* FetchBufferPool::HandOut(FetchBuffer& buffer) {
  char* text = buffer.base_;
  text[buffer.size_] = '\0';
  buffer.base_ = nullptr;
  const std::lock_guard lock(mutex_);
  given_back_.erase(text);
  live_.emplace(text, buffer.capacity_ + kHeaderBytes + 1);
  return text;
}

void FetchBufferPool::GiveBack(char* text, MisuseLog& misuse) {
  if (text == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(text);
  if (found == live_.end()) {
    misuse.Report(given_back_.contains(text)
                      ? "nrt_sys_trace_buffer_free: buffer freed twice"
                      : "nrt_sys_trace_buffer_free: not a buffer of nrt_sys_trace_fetch_events");
    return;
  }
  UnmapText(text, found->second);
  live_.erase(found);
  if (given_back_.size() == kGivenBackMax) given_back_.clear();
  given_back_.insert(text);
}

size_t FetchBufferPool::live() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

}  // namespace neurontrace
