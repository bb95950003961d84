// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "annotate/annotation_format.h"

namespace neurontrace::annotate {

// Domains of a process. Beyond: further ones are one, named "(further domains)".
inline constexpr uint32_t kAnnotationDomainsMax = 256;
// Categories with a name, over all domains. Beyond: they are shown by their numbers.
inline constexpr uint32_t kAnnotationCategoriesMax = 1'024;
// Registered texts. Beyond: the handle is null, which
// is shown as "(registered string beyond the limit)".
inline constexpr uint32_t kAnnotationTextsMax = 65'536;

// Returns the largest size up to `bytes` at which no character of UTF-8 is cut; bytes that are not
// UTF-8 are kept. `text[bytes]` must be readable.
uint32_t WholeCharacters(const char* text, uint32_t bytes);

// Copies a text to `to`, at most `capacity` bytes, cut between characters of UTF-8. Returns the
// number of bytes, and sets `is_cut` if there were more. A null text is empty. Wide characters
// become UTF-8; one that is none becomes '?'.
uint32_t CopyText(const char* text, char* to, uint32_t capacity, bool* is_cut);
uint32_t CopyText(const wchar_t* text, char* to, uint32_t capacity, bool* is_cut);

// A text that the application has registered, behind its handle.
struct RegisteredText {
  uint32_t bytes;
  bool is_cut;
  char text[1];  // `bytes` of it
};

// A domain, behind its handle.
struct NamedDomain {
  uint16_t index;  // 0: the default domain
  uint8_t bytes;
  char name[kAnnotationNameBytesMax];
};

// A name and its length.
struct CategoryName {
  uint8_t bytes = 0;
  const char* text = nullptr;
};

// The domains, categories and registered texts of this process. Names are kept for ever, as handles
// may be used at any time. Any thread: additions lock, all else does not. Zero-initialised.
class NameTable {
 public:
  static constexpr char kOtherDomain[] = "(further domains)";
  static constexpr char kOtherText[] = "(registered string beyond the limit)";

  // Returns the domain with this name, which is new if it was not known. Never fails.
  template <typename Char>
  const NamedDomain* AddDomain(const Char* name) {
    char text[kAnnotationNameBytesMax];
    bool is_cut = false;
    const uint32_t bytes = CopyText(name, text, sizeof text, &is_cut);
    return AddDomainText(text, bytes);
  }
  // Returns the domain of a handle; the default one for null, and for what is no handle.
  const NamedDomain* FindDomain(const void* handle) const;

  // Names a category of a domain. The first name of a category stays.
  template <typename Char>
  void AddCategory(const NamedDomain& domain, uint32_t category, const Char* name) {
    char text[kAnnotationNameBytesMax];
    bool is_cut = false;
    const uint32_t bytes = CopyText(name, text, sizeof text, &is_cut);
    AddCategoryText(domain, category, text, bytes);
  }
  // Returns the name of a category, or an empty one.
  CategoryName FindCategory(const NamedDomain& domain, uint32_t category) const;

  // Returns the handle of a copy of the text; null beyond the limit, or without memory.
  template <typename Char>
  const RegisteredText* AddRegistered(const Char* text) {
    char copy[kAnnotationMessageBytesMax];
    bool is_cut = false;
    const uint32_t bytes = CopyText(text, copy, sizeof copy, &is_cut);
    return AddRegisteredText(copy, bytes, is_cut);
  }

  // Called in a forked child, whose other threads do not exist: they may have held the lock.
  void OnForkedChild();

 private:
  // A named category. `key` is 0 until the entry is complete, and constant from then on.
  struct Category {
    std::atomic<uint64_t> key;
    uint8_t bytes;
    char name[kAnnotationNameBytesMax];
  };

  static uint64_t KeyOf(const NamedDomain& domain, uint32_t category) {
    return (uint64_t{domain.index} + 1) << 32 | category;
  }
  // Returns the place at which the search for a key begins.
  static uint32_t FirstPlace(uint64_t key) {
    return static_cast<uint32_t>((key * 0x9e37'79b9'7f4a'7c15ULL) >> 54);
  }
  const NamedDomain* AddDomainText(const char* text, uint32_t bytes);
  void AddCategoryText(const NamedDomain& domain, uint32_t category, const char* text,
                       uint32_t bytes);
  const RegisteredText* AddRegisteredText(const char* text, uint32_t bytes, bool is_cut);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  uint32_t domains_count_ = 1;  // with the default domain
  uint32_t texts_count_ = 0;
  NamedDomain domains_[kAnnotationDomainsMax] = {};
  Category categories_[kAnnotationCategoriesMax] = {};
};
static_assert(kAnnotationCategoriesMax == 1024, "FirstPlace returns 10 bits");

}  // namespace neurontrace::annotate
