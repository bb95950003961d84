// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/trace_message.h"

#include <protozero/pbf_reader.hpp>

#include "lib/validate/limits.h"

namespace neurontrace {

void TraceMessage::Parse(std::string_view bytes) {
  fields_.clear();
  bits_ = 0;
  for (protozero::pbf_reader reader(bytes.data(), bytes.size()); reader.next();) {
    // Limits the memory for a message of many empty fields.
    if (fields_.size() == validate_limits::kFieldsMax) throw TooManyFields();
    Field& field = fields_.emplace_back(Field{.tag = reader.tag_and_type()});
    bits_ |= BitOf(field.tag);
    switch (reader.wire_type()) {
      case protozero::pbf_wire_type::varint:
        field.number = reader.get_uint64();
        break;
      case protozero::pbf_wire_type::fixed64:
        field.number = reader.get_fixed64();
        break;
      case protozero::pbf_wire_type::length_delimited: {
        const protozero::data_view view = reader.get_view();
        field.text = {view.data(), view.size()};
        break;
      }
      // Other wire types appear in no field that is checked.
      default:
        reader.skip();
    }
  }
}

const TraceMessage::Field* TraceMessage::Last(uint32_t tag) const {
  // Protobuf's rule for a field that appears several times: the last one counts.
  for (auto field = fields_.rbegin(); field != fields_.rend(); ++field) {
    if (field->tag == tag) return &*field;
  }
  return nullptr;
}

std::optional<uint64_t> TraceMessage::Number(uint32_t tag) const {
  const Field* const field = (bits_ & BitOf(tag)) == 0 ? nullptr : Last(tag);
  return field == nullptr ? std::nullopt : std::optional(field->number);
}

std::string_view TraceMessage::Text(uint32_t tag) const {
  const Field* const field = Last(tag);
  return field == nullptr ? std::string_view() : field->text;
}

}  // namespace neurontrace
