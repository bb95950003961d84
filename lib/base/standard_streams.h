// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

// Output of programs. A full disk, a reader that has closed its pipe or a closed descriptor must
// neither end a program with an exception, as fmt::print does, nor remain unreported. Called on any
// thread; texts of different threads do not mix within one call.
namespace neurontrace {

// Prints to `file`. The stream remembers a failure, and FlushOutput reports it.
template <typename... Arguments>
void Print(std::FILE* file, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  [[maybe_unused]] const size_t written = std::fwrite(text.data(), 1, text.size(), file);
}
// Prints to standard output.
template <typename... Arguments>
void Print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Print(stdout, format, std::forward<Arguments>(arguments)...);
}

// Writes buffered standard output. Fails with FAILED_PRECONDITION if any output so far could not be
// written.
absl::Status FlushOutput();

// Flushes standard output and reports lost output on standard error; the last call of `program`.
// Returns `code`, or 1 if output is lost and `code` does not report a failure already.
int ExitCodeAfterOutput(std::string_view program, int code);

// Opens /dev/null for each of descriptors 0, 1 and 2 that the caller has closed, so that no file
// opened later is written or read as a standard stream. Writing to standard output fails then. The
// first call of a program.
void OpenStandardDescriptors();

}  // namespace neurontrace
