// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal_region.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace neurontrace::cli {
namespace {

// Returns whether the byte is not the first one of a UTF-8 character (RFC 3629).
bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

WindowSize WindowOfStderr() {
  WindowSize window;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    window = {.columns = size.ws_col, .rows = size.ws_row};
  }
  return window;
}

size_t ColumnsOfStdout() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string CutToColumns(std::string_view line, size_t columns) {
  size_t seen = 0;
  size_t last_at = 0;  // where the last column that fits begins
  for (size_t at = 0; at < line.size(); ++at) {
    // Counts characters, not bytes, and cuts before the character that does not fit.
    if (ContinuesCharacter(line[at])) continue;
    if (seen + 1 == columns) last_at = at;
    if (seen == columns) return columns == 0 ? "" : std::string(line.substr(0, last_at)) + "…";
    ++seen;
  }
  return std::string(line);
}

std::string TerminalRegion::Rewind() const {
  if (drawn_ == 0) return "";
  // The cursor is at the end of the last line: up by the others, then clear to the end of the
  // screen (ECMA-48 CUU and ED).
  return drawn_ == 1 ? "\r\x1b[J" : fmt::format("\r\x1b[{}A\x1b[J", drawn_ - 1);
}

void TerminalRegion::Draw(const std::vector<std::string>& lines) {
  if (!enabled_) return;
  std::string text = Rewind();
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i];
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = lines.size();
}

void TerminalRegion::Clear() {
  if (drawn_ == 0) return;
  std::fputs(Rewind().c_str(), stderr);
  std::fflush(stderr);
  drawn_ = 0;
}

}  // namespace neurontrace::cli
