// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Errors with a formatted message that names the place and, where there is one, the fix:
//   return InvalidArgument("chunk {} of {}: length {} is over {}", ...);
// fmt rather than absl::StrCat because Debian's Abseil has a string_view of its own that
// std::string_view is not.
namespace neurontrace {

// Returns an error with this code and a formatted message. The format is checked when it is
// compiled. Pure.
template <typename... Args>
absl::Status MakeStatus(absl::StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return absl::Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// One function for each code that is in use, named like the code.
#define NEURONTRACE_STATUS_MAKER(Name, code)                                        \
  template <typename... Args>                                                       \
  absl::Status Name(fmt::format_string<Args...> format, Args&&... args) {           \
    return MakeStatus(absl::StatusCode::code, format, std::forward<Args>(args)...); \
  }
NEURONTRACE_STATUS_MAKER(Aborted, kAborted)
NEURONTRACE_STATUS_MAKER(InvalidArgument, kInvalidArgument)
NEURONTRACE_STATUS_MAKER(NotFound, kNotFound)
NEURONTRACE_STATUS_MAKER(AlreadyExists, kAlreadyExists)
NEURONTRACE_STATUS_MAKER(FailedPrecondition, kFailedPrecondition)
NEURONTRACE_STATUS_MAKER(OutOfRange, kOutOfRange)
NEURONTRACE_STATUS_MAKER(ResourceExhausted, kResourceExhausted)
NEURONTRACE_STATUS_MAKER(Unavailable, kUnavailable)
NEURONTRACE_STATUS_MAKER(Internal, kInternal)
NEURONTRACE_STATUS_MAKER(DataLoss, kDataLoss)
#undef NEURONTRACE_STATUS_MAKER

// Returns OK, or FAILED_PRECONDITION with the option in front whose value is unusable. Pure.
inline absl::Status WithOption(std::string_view option, const absl::Status& status) {
  if (status.ok()) return status;
  return FailedPrecondition("{}: {}", option, std::string(status.message()));
}

}  // namespace neurontrace

#define NEURONTRACE_CONCAT_INNER(a, b) a##b
#define NEURONTRACE_CONCAT(a, b) NEURONTRACE_CONCAT_INNER(a, b)

// Returns the status of `expression` from the enclosing function unless it is OK.
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// Assigns the value of a StatusOr `expression` to `lhs`, or returns its status from the enclosing
// function.
#define ASSIGN_OR_RETURN(lhs, expression)                                \
  auto NEURONTRACE_CONCAT(status_or_, __LINE__) = (expression);          \
  if (!NEURONTRACE_CONCAT(status_or_, __LINE__).ok())                    \
    return std::move(NEURONTRACE_CONCAT(status_or_, __LINE__)).status(); \
  lhs = *std::move(NEURONTRACE_CONCAT(status_or_, __LINE__))
