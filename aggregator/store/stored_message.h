// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/suspension.h"
#include "neurontrace/v1/store.pb.h"

// Converts between the messages of store.proto and values of the store. Pure functions, any thread.
namespace neurontrace {

// Version of every record. A later version that this build could misread gets another number.
inline constexpr uint32_t kRecordVersion = 1;

// Serializes a record. `version` has the highest field number of its message and is therefore
// written last, so that a value truncated at any point does not decode.
template <typename Message>
std::string EncodeStored(Message message) {
  message.set_version(kRecordVersion);
  return message.SerializeAsString();
}

// Parses `value` and passes the message to `convert`, which returns a StatusOr of the result. Fails
// with DATA_LOSS, which names `what`, if the bytes are no such message, have another version, or
// `convert` fails: in a store each of these is damage.
template <typename Message, typename Convert>
auto DecodeStored(std::string_view what, std::string_view value, Convert convert)
    -> decltype(convert(std::declval<Message&>())) {
  Message message;
  if (value.size() > INT_MAX ||
      !message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return DataLoss("{}: malformed value of {} bytes", what, value.size());
  }
  if (message.version() != kRecordVersion) {
    return DataLoss("{}: unknown version {}, this program reads {}", what, message.version(),
                    kRecordVersion);
  }
  auto converted = convert(message);
  if (converted.ok()) return converted;
  return DataLoss("{}: {}", what, std::string(converted.status().message()));
}

// Returns text without invalid UTF-8 and control characters: see lib/base/clean_text.h. Protobuf
// would refuse the former, and the latter are not fit to be shown.
inline std::string CleanStored(std::string_view text) { return CleanText(text, text.size()); }

// Convert as lib/wire/conversions.h does, but also accept values of a newer build. Evidence from an
// unknown source gets the weakest known source; remarks of an unknown kind keep its number. They
// may change the message.
absl::StatusOr<RankEvidence> FromStored(v1::RankEvidence& message);
absl::StatusOr<Remark> FromStored(v1::Remark& message);
absl::StatusOr<Loss> FromStored(v1::Loss& message);
absl::StatusOr<Suspension> FromStored(v1::Suspension& message);

// Appends the converted messages to `values`; fails with the first one's error.
template <typename Messages, typename Value>
absl::Status FromStoredList(Messages* messages, std::vector<Value>& values) {
  values.reserve(static_cast<size_t>(messages->size()));
  for (auto& message : *messages) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromStored(message));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
