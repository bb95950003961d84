// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/hidden_captures.h"

#include <map>
#include <string>
#include <vector>

#include "lib/trace/ids.h"

namespace neurontrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Returns a field's text without hidden ids. Requires a field of text or bytes.
std::string Hide(const CanSeeCapture& can_see, const FieldDescriptor& field,
                 const std::string& text) {
  if (field.type() == FieldDescriptor::TYPE_STRING) return HideCaptures(text, can_see);
  const auto id = CaptureId::FromBytes(text);
  return id.ok() && !id->empty() && !can_see(*id) ? "" : text;
}

// Removes hidden ids from a message and everything inside it.
void HideIn(const CanSeeCapture& can_see, Message& message);

// Requires a field of messages or of texts; repeated fields keep their number of elements.
void HideInField(const CanSeeCapture& can_see, const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field.is_repeated()) {
    if (is_message) return HideIn(can_see, *reflection.MutableMessage(&message, &field));
    return reflection.SetString(&message, &field,
                                Hide(can_see, field, reflection.GetString(message, &field)));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (is_message) {
      HideIn(can_see, *reflection.MutableRepeatedMessage(&message, &field, i));
    } else {
      reflection.SetRepeatedString(
          &message, &field, i,
          Hide(can_see, field, reflection.GetRepeatedString(message, &field, i)));
    }
  }
}

void HideIn(const CanSeeCapture& can_see, Message& message) {
  std::vector<const FieldDescriptor*> fields;
  // Lists only fields that are set.
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const auto type = field->cpp_type();
    if (type == FieldDescriptor::CPPTYPE_MESSAGE || type == FieldDescriptor::CPPTYPE_STRING) {
      HideInField(can_see, *field, message);
    }
  }
}

}  // namespace

// Remembers each answer, because lists name the same captures often.
void HideCapturesIn(const CanSeeCapture& can_see, Message& message) {
  std::map<CaptureId, bool> known;
  HideIn(
      [&](const CaptureId& id) {
        const auto [entry, is_new] = known.try_emplace(id, false);
        if (is_new) entry->second = can_see(id);
        return entry->second;
      },
      message);
}

}  // namespace neurontrace
