// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stored_bytes.h"

#include "lib/base/clean_text.h"

namespace neurontrace {

// LEB128: seven bits in each byte, the lowest first; the highest bit says that more follow.
void StoredBytesWriter::Uint(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

// Zigzag: small negative numbers become small unsigned ones.
void StoredBytesWriter::Int(int64_t value) {
  Uint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

void StoredBytesWriter::String(std::string_view text) {
  Uint(text.size());
  bytes_.append(text);
}

void StoredBytesWriter::Strings(const std::vector<std::string>& texts) {
  Uint(texts.size());
  for (const std::string& text : texts) String(text);
}

// Ends after ten bytes, so that damaged input cannot shift bits out of range.
uint64_t StoredBytesReader::Uint() {
  uint64_t value = 0;
  for (int shift = 0; ok_ && shift < 64 && !rest_.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    // The tenth byte has room for one bit.
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

uint32_t StoredBytesReader::Uint32() {
  const uint64_t value = Uint();
  if (value > UINT32_MAX) ok_ = false;
  return ok_ ? static_cast<uint32_t>(value) : 0;
}

int64_t StoredBytesReader::Int() {
  const uint64_t value = Uint();
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

bool StoredBytesReader::Bool() {
  const uint64_t value = Uint();
  if (value > 1) ok_ = false;
  return ok_ && value == 1;
}

std::string StoredBytesReader::String() {
  const std::string_view text = View();
  return CleanText(text, text.size());
}

std::vector<std::string> StoredBytesReader::Strings() {
  std::vector<std::string> texts(Count());
  for (std::string& text : texts) text = String();
  return texts;
}

std::string_view StoredBytesReader::View() {
  const uint64_t length = Uint();
  if (length > rest_.size()) ok_ = false;
  if (!ok_) return {};
  const std::string_view text = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return text;
}

// Divides instead of multiplying, because a damaged count could overflow the product.
size_t StoredBytesReader::Count(size_t element_bytes_min) {
  const uint64_t count = Uint();
  if (count > rest_.size() / element_bytes_min) ok_ = false;
  return ok_ ? count : 0;
}

}  // namespace neurontrace
