// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace::cli {

// The size of a terminal's window.
struct WindowSize {
  size_t columns = 80;
  size_t rows = 24;
};

// Returns the size of the terminal at stderr; 80 by 24 if it is unknown.
WindowSize WindowOfStderr();

// Returns the width of the terminal at stdout; 0 if it is not one.
size_t ColumnsOfStdout();

// Returns the first columns of a line, which is UTF-8 without wide characters; the last one is "…"
// if the line was cut.
std::string CutToColumns(std::string_view line, size_t columns);

// Lines at the bottom of a terminal's stderr that are redrawn repeatedly. Draws nothing if not
// enabled, which the caller decides by isatty and --quiet. Lines must not wrap, see CutToColumns.
// One thread.
class TerminalRegion {
 public:
  explicit TerminalRegion(bool enabled) : enabled_(enabled) {}
  ~TerminalRegion() { Clear(); }
  TerminalRegion(const TerminalRegion&) = delete;
  TerminalRegion& operator=(const TerminalRegion&) = delete;

  // Replaces the previous lines; `lines` must fit the window.
  void Draw(const std::vector<std::string>& lines);
  // Removes the block, so that other output begins in its place.
  void Clear();

  bool enabled() const { return enabled_; }

 private:
  // Returns the escape sequences that move to the beginning of the block and clear everything
  // below.
  std::string Rewind() const;

  bool enabled_;
  size_t drawn_ = 0;  // lines; the cursor is at the end of the last
};

}  // namespace neurontrace::cli
