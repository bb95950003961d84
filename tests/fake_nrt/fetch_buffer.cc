// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/fetch_buffer.h"

#include <sys/mman.h>

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kPageBytes = 4096;
constexpr size_t kReleasedMax = 1 << 16;
// Where the heap keeps a block's size. As a size this is nearly the whole address space, without
// the bit that marks a block as mapped: the C library refuses it.
constexpr uint64_t kNotAHeapBlock = 0xffffffff4e525451;

constexpr size_t kSpareMax = 4;
constexpr size_t kSpareBytesMax = 64 << 20;

size_t MappingBytes(size_t text_bytes) {
  return (text_bytes + 1 + kHeaderBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

FetchBuffer::FetchBuffer(FetchBufferPool& pool, size_t bytes_expected) : pool_(pool) {
  const FetchBufferPool::Mapping mapping = pool.Take(std::max<size_t>(bytes_expected, 64));
  base_ = mapping.text;
  if (base_ != nullptr) capacity_ = mapping.bytes - kHeaderBytes - 1;
}

FetchBuffer::~FetchBuffer() {
  if (base_ != nullptr) pool_.Keep({base_, capacity_ + kHeaderBytes + 1});
}

bool FetchBuffer::Grow(size_t bytes) {
  if (base_ == nullptr) return false;
  const FetchBufferPool::Mapping grown = pool_.Take(std::max(size_ + bytes, capacity_ * 2));
  if (grown.text != nullptr) std::memcpy(grown.text, base_, size_);
  pool_.Keep({base_, capacity_ + kHeaderBytes + 1});
  base_ = grown.text;
  capacity_ = base_ == nullptr ? 0 : grown.bytes - kHeaderBytes - 1;
  return base_ != nullptr;
}

FetchBufferPool::~FetchBufferPool() {
  for (const Mapping& mapping : spare_) munmap(mapping.text - kHeaderBytes, mapping.bytes);
}

FetchBufferPool::Mapping FetchBufferPool::Take(size_t text_bytes) {
  Mapping mapping = {.bytes = MappingBytes(text_bytes)};
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::find_if(spare_.begin(), spare_.end(),
                                   [&](const Mapping& m) { return m.bytes >= mapping.bytes; });
    if (fits != spare_.end()) {
      mapping = *fits;
      spare_.erase(fits);
      mprotect(mapping.text - kHeaderBytes, mapping.bytes, PROT_READ | PROT_WRITE);
      return mapping;
    }
  }
  void* memory =
      mmap(nullptr, mapping.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  mapping.text = static_cast<char*>(memory) + kHeaderBytes;
  std::memcpy(mapping.text - sizeof(kNotAHeapBlock), &kNotAHeapBlock, sizeof(kNotAHeapBlock));
  return mapping;
}

void FetchBufferPool::Keep(Mapping mapping) {
  const std::lock_guard lock(mutex_);
  if (mapping.bytes > kSpareBytesMax || spare_.size() == kSpareMax) {
    munmap(mapping.text - kHeaderBytes, mapping.bytes);
    return;
  }
  mprotect(mapping.text - kHeaderBytes, mapping.bytes, PROT_NONE);
  spare_.push_back(mapping);
}

char* FetchBufferPool::HandOut(FetchBuffer& buffer) {
  char* text = buffer.base_;
  text[buffer.size_] = '\0';
  buffer.base_ = nullptr;
  const std::lock_guard lock(mutex_);
  released_.erase(text);
  live_.emplace(text, buffer.capacity_ + kHeaderBytes + 1);
  return text;
}

void FetchBufferPool::ReleaseBuffer(char* text, MisuseLog& misuse) {
  if (text == nullptr) return;
  Mapping mapping = {.text = text};
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(text);
    if (found == live_.end()) {
      misuse.Report(released_.contains(text)
                        ? "nrt_sys_trace_buffer_free: buffer freed twice"
                        : "nrt_sys_trace_buffer_free: not a buffer of nrt_sys_trace_fetch_events");
      return;
    }
    mapping.bytes = found->second;
    live_.erase(found);
    if (released_.size() == kReleasedMax) released_.clear();
    released_.insert(text);
  }
  Keep(mapping);
}

size_t FetchBufferPool::live() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

}  // namespace neurontrace
