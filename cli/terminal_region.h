// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace::cli {

struct WindowSize {
  size_t columns = 80;
  size_t rows = 24;
};

// Of the terminal that stderr is; 80 by 24 where it does not say.
WindowSize WindowOfStderr();

// Of the terminal that stdout is; 0: it is none.
size_t ColumnsOfStdout();

// The first columns of a line in UTF-8 without wide characters, the last of them "…" where
// something is left out.
std::string CutToColumns(std::string_view line, size_t columns);

// Some lines at the bottom of a terminal's stderr that are drawn over and over. Draws nothing when
// not enabled. One thread.
class TerminalRegion {
 public:
  explicit TerminalRegion(bool enabled) : enabled_(enabled) {}
  ~TerminalRegion() { Clear(); }
  TerminalRegion(const TerminalRegion&) = delete;
  TerminalRegion& operator=(const TerminalRegion&) = delete;

  // Takes the place of what was drawn before; `lines` fit the window.
  void Draw(const std::vector<std::string>& lines);
  // Takes the block away, so that other output starts where it was.
  void Clear();

  bool enabled() const { return enabled_; }

 private:
  std::string Rewind() const;  // to the beginning of the block, with nothing below

  bool enabled_;
  size_t drawn_ = 0;  // lines; the cursor is at the end of the last
};

}  // namespace neurontrace::cli
