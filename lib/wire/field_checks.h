// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

// What FromProto functions check of a field; INVALID_ARGUMENT names it. Pure functions, any thread.
namespace neurontrace {

// Fails if a text has more than `bytes_max` bytes.
inline absl::Status CheckText(std::string_view field, const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return absl::OkStatus();
  return InvalidArgument("{} has {} bytes; the limit is {}", field, text.size(), bytes_max);
}

// Fails also if a text has a control character. Names are compared with those that peers send back,
// so they may not contain anything that ToProto would change. The parser of protobuf has checked
// that they are UTF-8.
inline absl::Status CheckName(std::string_view field, const std::string& text, size_t bytes_max) {
  if (std::any_of(text.begin(), text.end(), IsControl)) {
    return InvalidArgument("{} has a control character", field);
  }
  return CheckText(field, text, bytes_max);
}
// CheckName with the limit of identities.
inline absl::Status CheckIdentityText(std::string_view field, const std::string& text) {
  return CheckName(field, text, limits::kIdentityStringBytesMax);
}

// Returns text for people as ToProto would send it again: without control characters, since it is
// logged and shown. Fails if it is too long.
inline absl::StatusOr<std::string> CheckDetail(std::string_view field, const std::string& text) {
  RETURN_IF_ERROR(CheckText(field, text, limits::kDetailBytesMax));
  return CleanText(text, limits::kDetailBytesMax);
}

// Fails if a list has more than `most` entries.
inline absl::Status CheckCount(std::string_view field, int count, int64_t most) {
  if (count <= most) return absl::OkStatus();
  return InvalidArgument("{} has {} entries; the limit is {}", field, count, most);
}

// Fails if a value is outside the known range: it comes from a newer peer or a hostile one.
inline absl::Status CheckEnum(std::string_view field, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("{} has the unknown value {}", field, value);
}

}  // namespace neurontrace
