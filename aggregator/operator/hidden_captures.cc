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
std::string Hide(const MaySeeCapture& may_see, const FieldDescriptor& field,
                 const std::string& text) {
  if (field.type() == FieldDescriptor::TYPE_STRING) return HideCaptures(text, may_see);
  const auto id = CaptureId::FromBytes(text);
  return id.ok() && !id->empty() && !may_see(*id) ? "" : text;
}

// Removes hidden ids from a message and everything inside it.
void HideIn(const MaySeeCapture& may_see, Message& message);

// Requires a field of messages or of texts; repeated fields keep their number of elements.
void HideInField(const MaySeeCapture& may_see, const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field.is_repeated()) {
    if (is_message) return HideIn(may_see, *reflection.MutableMessage(&message, &field));
    return reflection.SetString(&message, &field,
                                Hide(may_see, field, reflection.GetString(message, &field)));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (is_message) {
      HideIn(may_see, *reflection.MutableRepeatedMessage(&message, &field, i));
    } else {
      reflection.SetRepeatedString(
          &message, &field, i,
          Hide(may_see, field, reflection.GetRepeatedString(message, &field, i)));
    }
  }
}

void HideIn(const MaySeeCapture& may_see, Message& message) {
  std::vector<const FieldDescriptor*> fields;
  // Lists only fields that are set.
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const auto type = field->cpp_type();
    if (type == FieldDescriptor::CPPTYPE_MESSAGE || type == FieldDescriptor::CPPTYPE_STRING) {
      HideInField(may_see, *field, message);
    }
  }
}

}  // namespace

// Remembers each answer, because lists name the same captures often.
void HideCapturesIn(const MaySeeCapture& may_see, Message& message) {
  std::map<CaptureId, bool> known;
  HideIn(
      [&](const CaptureId& id) {
        const auto [entry, is_new] = known.try_emplace(id, false);
        if (is_new) entry->second = may_see(id);
        return entry->second;
      },
      message);
}

}  // namespace neurontrace
