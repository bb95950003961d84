// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace::cli {

// One line on a terminal's stderr that is redrawn repeatedly. Draws nothing if not enabled, which
// the caller decides by isatty and --quiet. One thread.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Draws the line. `fraction` from 0 to 1 draws a bar; negative: no bar, as the end is not known.
  void Draw(double fraction, std::string_view text);
  // Removes the line, so that other output begins on a clean one.
  void Clear();

 private:
  bool enabled_;
  bool drawn_ = false;
};

// Returns "[#######---------]", as Draw shows it, for tests. `fraction` is clamped to 0..1.
std::string Bar(double fraction, int width);

}  // namespace neurontrace::cli
