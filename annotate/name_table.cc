// SPDX-License-Identifier: Apache-2.0
#include "annotate/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "tap/pthread_lock.h"

namespace neurontrace::annotate {

namespace {

// Writes one character as UTF-8 and returns its bytes, 1 to 4. `to` has room for them.
uint32_t PutUtf8(uint32_t character, char* to) {
  const auto put = [to](int place, uint32_t value) { to[place] = static_cast<char>(value); };
  if (character >= 0x11'0000 || (character >= 0xd800 && character < 0xe000)) character = '?';
  if (character < 0x80) {
    put(0, character);
    return 1;
  }
  if (character < 0x800) {
    put(0, 0xc0 | character >> 6);
    put(1, 0x80 | (character & 0x3f));
    return 2;
  }
  if (character < 0x1'0000) {
    put(0, 0xe0 | character >> 12);
    put(1, 0x80 | (character >> 6 & 0x3f));
    put(2, 0x80 | (character & 0x3f));
    return 3;
  }
  put(0, 0xf0 | character >> 18);
  put(1, 0x80 | (character >> 12 & 0x3f));
  put(2, 0x80 | (character >> 6 & 0x3f));
  put(3, 0x80 | (character & 0x3f));
  return 4;
}

}  // namespace

uint32_t WholeCharacters(const char* text, uint32_t bytes) {
  constexpr uint32_t kContinuationsMax = 3;
  uint32_t end = bytes;
  while (end > 0 && bytes - end < kContinuationsMax &&
         (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  return (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80 ? bytes : end;
}

// A text of any length costs no more than the capacity.
uint32_t CopyText(const char* text, char* to, uint32_t capacity, bool* is_cut) {
  if (text == nullptr) return 0;
  const size_t bytes = strnlen(text, capacity + 1);
  const bool fits = bytes <= capacity;
  const uint32_t copied = fits ? static_cast<uint32_t>(bytes) : WholeCharacters(text, capacity);
  memcpy(to, text, copied);
  *is_cut = !fits;
  return copied;
}

uint32_t CopyText(const wchar_t* text, char* to, uint32_t capacity, bool* is_cut) {
  uint32_t copied = 0;
  for (; text != nullptr && *text != L'\0'; ++text) {
    char character[4];
    const uint32_t bytes = PutUtf8(static_cast<uint32_t>(*text), character);
    if (copied + bytes > capacity) {
      *is_cut = true;
      break;
    }
    memcpy(to + copied, character, bytes);
    copied += bytes;
  }
  return copied;
}

const NamedDomain* NameTable::AddDomainText(const char* text, uint32_t bytes) {
  const tap::PthreadLock lock(&mutex_);
  for (uint32_t i = 1; i < domains_count_; ++i) {
    const NamedDomain& known = domains_[i];
    if (known.bytes == bytes && memcmp(known.name, text, bytes) == 0) return &known;
  }
  // The last place is that of all further domains.
  const bool is_last = domains_count_ + 1 >= kAnnotationDomainsMax;
  NamedDomain& domain = domains_[is_last ? kAnnotationDomainsMax - 1 : domains_count_];
  if (is_last) {
    text = kOtherDomain;
    bytes = sizeof kOtherDomain - 1;
  }
  if (domain.bytes == 0) {
    memcpy(domain.name, text, bytes);
    domain.bytes = static_cast<uint8_t>(bytes);
  }
  domain.index = static_cast<uint16_t>(&domain - domains_);
  if (!is_last) ++domains_count_;
  return &domain;
}

const NamedDomain* NameTable::FindDomain(const void* handle) const {
  const auto address = reinterpret_cast<uintptr_t>(handle);
  const auto first = reinterpret_cast<uintptr_t>(domains_);
  if (address <= first || address >= first + sizeof domains_) return &domains_[0];
  if ((address - first) % sizeof(NamedDomain) != 0) return &domains_[0];
  return static_cast<const NamedDomain*>(handle);
}

void NameTable::AddCategoryText(const NamedDomain& domain, uint32_t category, const char* text,
                                uint32_t bytes) {
  const uint64_t key = KeyOf(domain, category);
  const tap::PthreadLock lock(&mutex_);
  for (uint32_t i = 0; i < kAnnotationCategoriesMax; ++i) {
    Category& entry = categories_[(FirstPlace(key) + i) % kAnnotationCategoriesMax];
    const uint64_t known = entry.key.load(std::memory_order_relaxed);
    if (known == key) return;
    if (known != 0) continue;
    memcpy(entry.name, text, bytes);
    entry.bytes = static_cast<uint8_t>(bytes);
    // Readers do not lock: the key makes the entry valid.
    entry.key.store(key, std::memory_order_release);
    return;
  }
}

CategoryName NameTable::FindCategory(const NamedDomain& domain, uint32_t category) const {
  if (category == 0) return {};
  const uint64_t key = KeyOf(domain, category);
  for (uint32_t i = 0; i < kAnnotationCategoriesMax; ++i) {
    const Category& entry = categories_[(FirstPlace(key) + i) % kAnnotationCategoriesMax];
    const uint64_t known = entry.key.load(std::memory_order_acquire);
    if (known == key) return {entry.bytes, entry.name};
    if (known == 0) break;
  }
  return {};
}

const RegisteredText* NameTable::AddRegisteredText(const char* text, uint32_t bytes, bool is_cut) {
  {
    const tap::PthreadLock lock(&mutex_);
    if (texts_count_ >= kAnnotationTextsMax) return nullptr;
    ++texts_count_;
  }
  // Never freed: NVTX has no call that ends a registration.
  void* const memory = malloc(sizeof(RegisteredText) + bytes);
  if (memory == nullptr) return nullptr;
  auto* const registered = static_cast<RegisteredText*>(memory);
  registered->bytes = bytes;
  registered->is_cut = is_cut;
  memcpy(registered->text, text, bytes);
  return registered;
}

void NameTable::OnForkedChild() { mutex_ = PTHREAD_MUTEX_INITIALIZER; }

}  // namespace neurontrace::annotate
