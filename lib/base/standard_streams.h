// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

// What a program prints. A full disk, a reader that is gone or a closed descriptor must not end it
// with an exception, as fmt::print does, and must not pass unsaid.
namespace neurontrace {

// Prints to `file`. A failure is remembered by the stream, for FlushOutput.
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

// Writes what standard output still buffers. Fails if any of what was printed there so far could
// not be written.
absl::Status FlushOutput();

// The last thing that `program` does: checks its standard output, and says on standard error if any
// of it is lost. Returns `code`, or 1 if output is lost and `code` does not say that the program
// failed.
int ExitCodeAfterOutput(std::string_view program, int code);

// The first thing that a program does. Gives descriptors 0, 1 and 2, if the caller closed them, a
// file of their own, so that nothing that is opened later is written to or read as a standard
// stream; writing to standard output fails then.
void OpenStandardDescriptors();

}  // namespace neurontrace
