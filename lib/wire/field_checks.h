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

inline absl::Status CheckText(std::string_view field, const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return absl::OkStatus();
  return InvalidArgument("{} has {} bytes; the limit is {}", field, text.size(), bytes_max);
}

// Names are compared with what comes back, so nothing in them may be what ToProto would not send.
// That they are UTF-8 the parser has checked.
inline absl::Status CheckName(std::string_view field, const std::string& text, size_t bytes_max) {
  if (std::any_of(text.begin(), text.end(), IsControl)) {
    return InvalidArgument("{} has a control character", field);
  }
  return CheckText(field, text, bytes_max);
}
inline absl::Status CheckIdentityText(std::string_view field, const std::string& text) {
  return CheckName(field, text, limits::kIdentityStringBytesMax);
}

// Words for people, held as ToProto would send them again: without control characters, since they
// are logged and shown. Too many are refused.
inline absl::StatusOr<std::string> TakeDetail(std::string_view field, const std::string& text) {
  RETURN_IF_ERROR(CheckText(field, text, limits::kDetailBytesMax));
  return CleanText(text, limits::kDetailBytesMax);
}

inline absl::Status CheckCount(std::string_view field, int count, int64_t most) {
  if (count <= most) return absl::OkStatus();
  return InvalidArgument("{} has {} entries; the limit is {}", field, count, most);
}

// A value that this version does not know, from a newer peer or a hostile one.
inline absl::Status CheckEnum(std::string_view field, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("{} has the unknown value {}", field, value);
}

}  // namespace neurontrace
