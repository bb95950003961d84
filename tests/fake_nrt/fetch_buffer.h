// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/fake_nrt/decimal.h"
#include "tests/fake_nrt/misuse_log.h"

namespace neurontrace {

class FetchBufferPool;

// The text of one fetch while it is written: append-only, in memory of the pool's own. One thread.
class FetchBuffer {
 public:
  FetchBuffer(FetchBufferPool& pool, size_t bytes_expected);
  ~FetchBuffer();
  FetchBuffer(const FetchBuffer&) = delete;
  FetchBuffer& operator=(const FetchBuffer&) = delete;

  // False once memory ran out; appends are then without effect.
  bool ok() const { return base_ != nullptr; }
  size_t size() const { return size_; }

  // Makes room for this many bytes; the unchecked appends below need it.
  bool Reserve(size_t bytes) { return size_ + bytes <= capacity_ || Grow(bytes); }
  void Text(std::string_view text) {
    std::memcpy(base_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void Number(uint64_t value) {
    size_ = static_cast<size_t>(WriteDecimal(base_ + size_, value) - base_);
  }
  void Signed(int64_t value) {
    if (value < 0) base_[size_++] = '-';
    Number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  }
  void Hexadecimal(uint64_t value) {
    char* end = std::to_chars(base_ + size_, base_ + capacity_, value, 16).ptr;
    size_ = static_cast<size_t>(end - base_);
  }

 private:
  friend class FetchBufferPool;
  bool Grow(size_t bytes);

  FetchBufferPool& pool_;
  char* base_ = nullptr;  // of the text; the mapping begins a header before
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Hands out fetch texts from page mappings of its own and takes them back. free() of such a pointer
// dies in the C library, as the bytes before it are no size of a heap block; giving back something
// else, or the same twice, is reported as misuse. A text that was given back cannot be read. Any
// thread may call.
class FetchBufferPool {
 public:
  ~FetchBufferPool();

  // Terminates the text with a NUL and passes it to the caller, who owes a ReleaseBuffer.
  char* HandOut(FetchBuffer& buffer);
  void ReleaseBuffer(char* text, MisuseLog& misuse);
  size_t live() const;

 private:
  friend class FetchBuffer;
  // A page mapping, known by the text that begins a header behind its start.
  struct Mapping {
    char* text = nullptr;
    size_t bytes = 0;
  };
  // A mapping for a text of so many bytes; its text is nullptr without memory.
  Mapping Take(size_t text_bytes);
  // Takes away the right to read it, and keeps the pages for the next fetch if they are not too
  // many.
  void Keep(Mapping mapping);

  mutable std::mutex mutex_;
  std::vector<Mapping> spare_;              // guarded by mutex_
  std::unordered_map<char*, size_t> live_;  // text -> bytes of its mapping; guarded by mutex_
  std::unordered_set<char*> released_;      // guarded by mutex_
};

}  // namespace neurontrace
