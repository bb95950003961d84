// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "lib/base/standard_streams.h"

namespace neurontrace::cli {

std::string Bar(double fraction, int width) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width + 0.5);
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "]";
}

void ProgressLine::Draw(double fraction, std::string_view text) {
  if (!enabled_) return;
  const std::string bar = fraction < 0 ? "" : Bar(fraction, 24) + " ";
  // The cursor returns to the first column, and the rest of the old line is cleared (ECMA-48 EL).
  Print(stderr, "\r\x1b[K{}{}", bar, text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::Clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace neurontrace::cli
