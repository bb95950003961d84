// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Writes what the store has much of, the entries of the chunk index and the rows of clock models:
// unsigned integers as LEB128 varints, signed ones zigzag before, strings with their length before
// them. Every value begins with its version.
class StoredBytesWriter {
 public:
  explicit StoredBytesWriter(uint64_t version) { Uint(version); }
  void Uint(uint64_t value);
  void Int(int64_t value);
  void Bool(bool value) { Uint(value ? 1 : 0); }
  void String(std::string_view text);
  void Strings(const std::vector<std::string>& texts);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them again. After the first thing that does not fit everything reads as zero and Finished
// is false, so that callers check once at the end. Vectors read their count with Count, which never
// gives more elements than the bytes left can hold, each having `element_bytes_min` at least: who
// makes the vector at once says how many they are, since an element can take far more memory.
class StoredBytesReader {
 public:
  explicit StoredBytesReader(std::string_view bytes) : rest_(bytes) {}
  uint64_t Uint();
  uint32_t Uint32();
  int64_t Int();
  bool Bool();
  // Words and names: without the control characters of a store that nobody of ours has written.
  std::string String();
  std::vector<std::string> Strings();
  std::string Bytes() { return std::string(View()); }
  std::string_view View();  // into the bytes read from
  size_t Count(size_t element_bytes_min = 1);
  // The value is an enum of at most `max`.
  template <typename Enum>
  Enum EnumUpTo(Enum max) {
    const uint64_t value = Uint();
    if (value > static_cast<uint64_t>(max)) ok_ = false;
    return ok_ ? static_cast<Enum>(value) : Enum{};
  }

  bool ok() const { return ok_; }
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace neurontrace
