// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <protozero/exception.hpp>
#include <string_view>
#include <vector>

namespace neurontrace {

// The fields of one protobuf message, which are looked up by number and wire type
// (lib/validate/perfetto_numbers.h). A field of another wire type is another field. If a field
// appears several times, the last one counts. Texts point into the message. Parsing is linear and
// keeps all fields, as a check may need several of them; a look-up searches backwards. One thread
// at a time.
class TraceMessage {
 public:
  // One field in the order of the message. Of other wire types only the tag is known.
  struct Field {
    uint32_t tag = 0;
    uint64_t number = 0;    // of a varint or fixed64
    std::string_view text;  // of bytes
  };
  // Thrown if there are more fields than lib/validate/limits.h allows.
  struct TooManyFields : protozero::exception {
    const char* what() const noexcept override { return "too many fields"; }
  };

  TraceMessage() = default;
  explicit TraceMessage(std::string_view bytes) { Parse(bytes); }

  // Replaces the fields by those of `bytes`, which must outlive their use. Throws
  // protozero::exception if the bytes are not a message. Keeps its memory between messages.
  void Parse(std::string_view bytes);

  // Returns whether the message has the field.
  bool Has(uint32_t tag) const { return (bits_ & BitOf(tag)) != 0 && Last(tag) != nullptr; }
  // Returns the value of a varint or fixed64 field; nullopt if there is none.
  std::optional<uint64_t> Number(uint32_t tag) const;
  // Returns the same; `otherwise` if there is none.
  uint64_t Number(uint32_t tag, uint64_t otherwise) const {
    return Number(tag).value_or(otherwise);
  }
  // Returns the bytes of a field; empty if there is none.
  std::string_view Text(uint32_t tag) const;

  // Iterate over all fields in the order of the message, for repeated ones.
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  // Returns the filter's bit of a field's number.
  static uint64_t BitOf(uint32_t tag) { return uint64_t{1} << ((tag >> 3) % 64); }
  // Returns the last field with this tag, or nullptr.
  const Field* Last(uint32_t tag) const;

  std::vector<Field> fields_;
  uint64_t bits_ = 0;  // a Bloom filter of the tags, so that most absent ones are not searched for
};

}  // namespace neurontrace
