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
#include "neurontrace/v1/store.pb.h"

// How the messages of store.proto become values of the store and back. Pure functions, any thread.
namespace neurontrace {

// Of every record. A later version that this one could misread gets another number.
inline constexpr uint32_t kRecordVersion = 1;

// `version` has the highest number of its message's fields and is written last, so a value that was
// cut at any place does not decode.
template <typename Message>
std::string EncodeStored(Message message) {
  message.set_version(kRecordVersion);
  return message.SerializeAsString();
}

// Returns DATA_LOSS, which names `what`, for bytes that are no such message, for another version
// and where `convert`, from the message to a StatusOr, fails.
template <typename Message, typename Convert>
auto DecodeStored(std::string_view what, std::string_view value, Convert convert)
    -> decltype(convert(std::declval<Message&>())) {
  Message message;
  if (value.size() > INT_MAX ||
      !message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return DataLoss("{}: its {} bytes do not fit", what, value.size());
  }
  if (message.version() != kRecordVersion) {
    return DataLoss("{}: version {} where {} is known", what, message.version(), kRecordVersion);
  }
  auto converted = convert(message);
  if (converted.ok()) return converted;
  return DataLoss("{}: {}", what, std::string(converted.status().message()));
}

// Text fit for a message, and for being shown: see lib/base/clean_text.h.
inline std::string CleanStored(std::string_view text) { return CleanText(text, text.size()); }

// These differ from lib/wire/conversions.h in what they take: values of a newer build, as evidence
// from an unknown source, which is the worst, and remarks of an unknown kind, which have its
// number.
absl::StatusOr<RankEvidence> FromStored(v1::RankEvidence& message);
absl::StatusOr<Remark> FromStored(v1::Remark& message);
absl::StatusOr<Loss> FromStored(v1::Loss& message);

template <typename Messages, typename Value>
absl::Status FromStoredList(Messages* messages, std::vector<Value>& values) {
  values.reserve(static_cast<size_t>(messages->size()));
  for (auto& message : *messages) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromStored(message));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
