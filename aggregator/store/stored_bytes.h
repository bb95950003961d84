// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The writer and the reader are here together because they define one encoding.
namespace neurontrace {

// Encodes the most numerous values of the store, the entries of the chunk index and the rows of
// clock models, more compactly than protobuf would. Unsigned integers are LEB128 varints, signed
// ones are zigzag-encoded first, and strings follow their length. Every value begins with its
// version.
class StoredBytesWriter {
 public:
  // Writes the version first.
  explicit StoredBytesWriter(uint64_t version) { Uint(version); }
  void Uint(uint64_t value);
  void Int(int64_t value);
  void Bool(bool value) { Uint(value ? 1 : 0); }
  void String(std::string_view text);
  void Strings(const std::vector<std::string>& texts);
  // Returns the bytes; the writer is not used afterwards.
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Decodes what StoredBytesWriter wrote. After the first malformed value everything reads as zero or
// empty, ok and Finished are false, and callers check once at the end. The bytes must outlive it.
class StoredBytesReader {
 public:
  explicit StoredBytesReader(std::string_view bytes) : rest_(bytes) {}
  // A varint of more than 64 bits is malformed, as is a value above the type's range.
  uint64_t Uint();
  uint32_t Uint32();
  int64_t Int();
  bool Bool();
  // Removes control characters: names of a store that somebody else has written are shown to
  // people.
  std::string String();
  std::vector<std::string> Strings();
  std::string Bytes() { return std::string(View()); }
  std::string_view View();  // into the bytes passed to the constructor
  // Returns a number of elements, never more than the bytes left can hold at `element_bytes_min`
  // each. Callers that allocate for all elements at once pass their minimum size, since an element
  // may take far more memory than bytes.
  size_t Count(size_t element_bytes_min = 1);
  // Fails for a value above `max`.
  template <typename Enum>
  Enum EnumUpTo(Enum max) {
    const uint64_t value = Uint();
    if (value > static_cast<uint64_t>(max)) ok_ = false;
    return ok_ ? static_cast<Enum>(value) : Enum{};
  }

  bool ok() const { return ok_; }
  // Returns whether all bytes were read and none was malformed.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace neurontrace
