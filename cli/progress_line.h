// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace::cli {

// One line on a terminal's stderr that is drawn over and over. Draws nothing when not enabled. One
// thread.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `fraction` from 0 to 1 draws a bar; below 0 none (the end is not known).
  void Draw(double fraction, std::string_view text);
  // Takes the line away, so that other output starts on a clean one.
  void Clear();

 private:
  bool enabled_;
  bool drawn_ = false;
};

// "[#######---------]": what Draw shows, for tests. `fraction` is clamped to 0..1.
std::string Bar(double fraction, int width);

}  // namespace neurontrace::cli
